#pragma once
// The few instructions by which most words are read inside a transaction, for the library and for programs that are compiled with spht.hpp:
// a call for each word would keep the CPU from beginning one transaction while it waits for the memory of another. Programs use
// transaction::read().
//
// The layout belongs to the interface of the library: programs and library have the same major version.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <cstddef>
#include <cstdint>

namespace stillpoint::spht {

/// The facts of a running transaction that reading needs; each sp_spht_transaction begins with one. A transaction that reads in another way
/// has `read_before` 0.
struct read_view {
    std::uint64_t* versions;  ///< each line of memory has one: timestamp << 1, or odd while a transaction writes the line
    std::uint64_t versions_mask;  ///< their number, a power of two, minus 1
    std::uint64_t read_before;  ///< lines with older versions may be read; 0: none
    std::uint64_t written;  ///< the bits of words that the transaction has written: such words are read by a call
    std::uint64_t settled;  ///< what has this version or an older one is durable, and need not be noted
    std::uint64_t newest_read;  ///< newest version that was noted
    std::uint64_t newest_durable_read;  ///< among those of transactions that have written durable memory
    std::uint64_t** lines;  ///< the versions that the commit looks at again
    std::uint64_t line_count;  ///< of a transaction that only reads: 1 as soon as it has read something
    std::uint64_t line_count_max;
    std::uint64_t keeps_lines;  ///< 0: it only reads

    static constexpr unsigned line_shift = 6;
    static constexpr unsigned spread_shift = 17;

    /// Neighbouring lines have neighbouring versions; far ones that would fall together are spread.
    [[nodiscard]] std::uint64_t* version_of(std::uintptr_t address) const noexcept
    {
        const std::uint64_t line = address >> line_shift;
        return versions + ((line ^ (line >> spread_shift) * 0x9e37'79b9) & versions_mask);
    }
    [[nodiscard]] static std::uint64_t hash(const std::uint64_t* word) noexcept
    {
        return (reinterpret_cast<std::uintptr_t>(word) >> 3) * 0x9e37'79b9'7f4a'7c15;
    }
    [[nodiscard]] static std::uint64_t written_bit(const std::uint64_t* word) noexcept { return std::uint64_t{1} << (hash(word) >> 58); }

    /// After a version was found to be older than read_before. False: too many lines were read.
    [[nodiscard, gnu::always_inline]] bool note(std::uint64_t* version_word, std::uint64_t version) noexcept
    {
        if (keeps_lines == 0) {
            line_count = 1;
        } else if (line_count == 0 || lines[line_count - 1] != version_word) {
            if (line_count == line_count_max) {
                return false;
            }
            lines[line_count++] = version_word;
        }
        if (version > settled) {
            newest_read = newest_read < version ? version : newest_read;
            newest_durable_read = version % 2 == 0 && newest_durable_read < version ? version : newest_durable_read;
        }
        return true;
    }
    /// The aligned word at `word`. False: nothing is known; ask sp_spht_read_word().
    [[nodiscard, gnu::always_inline]] bool try_read(const std::uint64_t* word, std::uint64_t& value) noexcept
    {
        if (written != 0 && (written & written_bit(word)) != 0) {
            return false;
        }
        std::uint64_t* const version_word = version_of(reinterpret_cast<std::uintptr_t>(word));
        const std::uint64_t before = __atomic_load_n(version_word, __ATOMIC_ACQUIRE);
        const std::uint64_t found = __atomic_load_n(word, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(version_word, __ATOMIC_RELAXED) != before || before % 2 != 0 || before >> 1 >= read_before ||
            !note(version_word, before >> 1)) {
            return false;
        }
        value = found;
        return true;
    }
};
static_assert(offsetof(read_view, read_before) == 16 && offsetof(read_view, lines) == 56 && sizeof(read_view) == 88);

}  // namespace stillpoint::spht

#endif
