#pragma once
// WriteSet: the words that a transaction has written and no other thread sees yet, in the order of their first store.

#include <cstdint>

#include "core/result.hpp"
#include "os/reserved_array.hpp"
#include "stillpoint/spht_read_view.hpp"

namespace stillpoint::spht {

/// A bit for each byte whose bits `mask` has.
[[nodiscard]] inline std::uint8_t byte_mask(std::uint64_t mask) noexcept
{
    std::uint8_t bytes = 0;
    for (unsigned i = 0; i < 8; ++i) {
        bytes |= static_cast<std::uint8_t>((mask >> (i * 8) & 1) << i);
    }
    return bytes;
}

/// Threads: one.
class WriteSet {
public:
    struct Entry {
        std::uint64_t* word;
        std::uint64_t value;
        std::uint64_t mask;  ///< ones in the bytes that were written
        /// The word as the transaction has it, where memory has `found`.
        [[nodiscard]] std::uint64_t over(std::uint64_t found) const noexcept { return (found & ~mask) | value; }
    };
    /// Entries at most: more make the log record too large in any case.
    static constexpr std::uint64_t entries_max = std::uint64_t{1} << 22;

    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve();

    void clear() noexcept
    {
        count_ = 0;
        if (++round_ == 0) [[unlikely]] {
            forget_places();
        }
    }
    [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
    [[nodiscard]] const Entry* begin() const noexcept { return entries_.data(); }
    [[nodiscard]] const Entry* end() const noexcept { return entries_.data() + count_; }

    /// nullptr: the word was not written.
    [[nodiscard]] const Entry* find(const std::uint64_t* word) const noexcept;
    /// `may_be_there` false: the word was not written before. Returns false where there is no room for more.
    [[nodiscard]] bool put(std::uint64_t* word, std::uint64_t value, std::uint64_t mask, bool may_be_there = true) noexcept;

private:
    struct Place {
        std::uint32_t round;  ///< another one than the present: the place is empty
        std::uint32_t entry;
    };

    [[nodiscard]] std::uint64_t first_place(const std::uint64_t* word) const noexcept { return read_view::hash(word) >> place_shift_; }
    void forget_places() noexcept;
    void grow() noexcept;
    void insert_place(std::uint32_t entry) noexcept;

    os::ReservedArray<Entry> entries_;
    os::ReservedArray<Place> places_;
    std::uint64_t count_ = 0;
    std::uint32_t round_ = 1;
    unsigned place_shift_ = 64 - 6;
};

}  // namespace stillpoint::spht
