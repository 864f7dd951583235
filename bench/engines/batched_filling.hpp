#pragma once
// A store whose puts are transactions is filled by larger ones, so that a disk syncs once for many keys.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace bench {

/// A base of `Store`, which has put_in(tx, key, value). `Memory::atomically` runs a body as one transaction.
template <class Store, class Memory, std::size_t puts_at_once = 256>
class BatchedFilling {
public:
    void begin_fill() noexcept { filling_ = true; }
    void end_fill()
    {
        filling_ = false;
        for (std::size_t first = 0; first < filled_.size(); first += puts_at_once) {
            const std::size_t end = std::min(filled_.size(), first + puts_at_once);
            Memory::atomically([&](auto& tx) {
                for (std::size_t i = first; i < end; ++i) {
                    static_cast<Store&>(*this).put_in(tx, filled_[i].first, filled_[i].second);
                }
            });
        }
        filled_ = {};
    }

protected:
    /// True: the put waits for end_fill().
    [[nodiscard]] bool is_kept_for_later(std::uint64_t key, std::span<const std::byte> value)
    {
        if (filling_) {
            filled_.emplace_back(key, std::vector(value.begin(), value.end()));
        }
        return filling_;
    }

private:
    bool filling_ = false;
    std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> filled_;
};

}  // namespace bench
