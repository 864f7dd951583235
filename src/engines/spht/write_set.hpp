#pragma once
// WriteSet: the words that a transaction has written and no other thread sees yet, in the order of their first store.

#include <cstdint>

#include "core/result.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::spht {

/// Threads: one.
class WriteSet {
public:
    struct Entry {
        std::uint64_t* word;
        std::uint64_t value;
        std::uint64_t mask;  ///< ones in the bytes that were written
    };
    /// Entries at most: more make the log record too large in any case.
    static constexpr std::uint64_t entries_max = std::uint64_t{1} << 22;

    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve();

    void clear() noexcept
    {
        count_ = 0;
        filter_ = 0;
        if (++round_ == 0) [[unlikely]] {
            forget_places();
        }
    }
    [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
    [[nodiscard]] const Entry* begin() const noexcept { return entries_.data(); }
    [[nodiscard]] const Entry* end() const noexcept { return entries_.data() + count_; }

    /// False: the word was not written.
    [[nodiscard]] bool may_have(const std::uint64_t* word) const noexcept { return filter_ != 0 && (filter_ & filter_bit(word)) != 0; }
    /// nullptr: the word was not written.
    [[nodiscard]] const Entry* find(const std::uint64_t* word) const noexcept
    {
        if (!may_have(word)) [[likely]] {
            return nullptr;
        }
        return find_entry(word);
    }
    /// False: there is no room for more.
    [[nodiscard]] bool put(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept;

private:
    struct Place {
        std::uint32_t round;  ///< another one than the present: the place is empty
        std::uint32_t entry;
    };

    [[nodiscard]] static std::uint64_t hash(const std::uint64_t* word) noexcept
    {
        return (reinterpret_cast<std::uintptr_t>(word) >> 3) * 0x9e37'79b9'7f4a'7c15;
    }
    [[nodiscard]] static std::uint64_t filter_bit(const std::uint64_t* word) noexcept { return std::uint64_t{1} << (hash(word) >> 58); }
    [[nodiscard]] std::uint64_t first_place(const std::uint64_t* word) const noexcept { return hash(word) >> place_shift_; }
    [[nodiscard]] const Entry* find_entry(const std::uint64_t* word) const noexcept;
    void forget_places() noexcept;
    void grow() noexcept;
    void insert_place(std::uint32_t entry) noexcept;

    os::ReservedArray<Entry> entries_;
    os::ReservedArray<Place> places_;
    std::uint64_t count_ = 0;
    std::uint64_t filter_ = 0;
    std::uint32_t round_ = 1;
    unsigned place_shift_ = 64 - 6;
};

}  // namespace stillpoint::spht
