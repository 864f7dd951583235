#pragma once
// PrivateBlocks: memory that a transaction has allocated. No other thread knows it before the commit, so it is written in place: the
// compiler may leave stores to it without instrumentation, and mix them with others.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stillpoint::itm {

class PrivateBlocks {
public:
    void add(const void* block, std::size_t bytes);
    [[nodiscard]] bool contains(const void* place) const noexcept
    {
        const auto address = reinterpret_cast<std::uintptr_t>(place);
        return address - first_ < last_ - first_ && is_in_run(address);
    }
    [[nodiscard]] bool empty() const noexcept { return blocks_.empty(); }
    void clear() noexcept
    {
        blocks_.clear();
        first_ = UINTPTR_MAX;
        last_ = UINTPTR_MAX;
    }

private:
    struct Block {
        std::uintptr_t first;
        std::uintptr_t last;  ///< after it
    };
    [[nodiscard]] bool is_in_run(std::uintptr_t address) const noexcept;

    /// Sorted runs whose lengths are the powers of two in the count, the longest first.
    std::vector<Block> blocks_;
    std::uintptr_t first_ = UINTPTR_MAX;
    std::uintptr_t last_ = UINTPTR_MAX;
};

}  // namespace stillpoint::itm
