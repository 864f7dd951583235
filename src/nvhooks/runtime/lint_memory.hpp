#pragma once
// Looking for addresses of volatile memory in durable memory, word by word.

#include <cstddef>
#include <cstdint>

#include "runtime/lint_report.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint {
class Heap;
}

namespace stillpoint::lint {

/// Whether a word may be an address outside durable memory: neither a small number, nor one that no program can have.
[[nodiscard]] inline bool may_be_volatile(std::uint64_t word) noexcept
{
    constexpr std::uint64_t lowest_address = 64 * 1024;  // Below, the kernel maps nothing.
    constexpr std::uint64_t address_space_end = 1ULL << 47;
    return word >= lowest_address && word < address_space_end && (word >> SP_WINDOW_SHIFT) != SP_WINDOW_INDEX;
}

/// Whether there is memory at that address. Cost: a system call.
[[nodiscard]] bool is_mapped(std::uint64_t address) noexcept;

/// Calls visit(word, value) for each whole, aligned word of the bytes whose value is the address of volatile memory.
template <class Visit>
void visit_volatile_addresses(const void* memory, std::size_t bytes, Visit visit)
{
    constexpr std::uintptr_t word_bytes = sizeof(std::uint64_t);
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    for (std::uintptr_t at = (begin + word_bytes - 1) & ~(word_bytes - 1); at + word_bytes <= begin + bytes; at += word_bytes) {
        const auto* const word = reinterpret_cast<const std::uint64_t*>(at);
        const std::uint64_t value = __atomic_load_n(word, __ATOMIC_RELAXED);  // Another thread may be writing it.
        if (may_be_volatile(value) && is_mapped(value)) {
            visit(word, value);
        }
    }
}

/// A pointer stored there was reported: find_pointers() passes over that word. The table forgets where it is full.
void remember(const void* location) noexcept;

/// Reports each word of a live block that is the address of volatile memory and was not reported when it was stored: code
/// without hooks wrote it. Words at one offset of blocks of one size are one place.
void find_pointers(const Heap& heap, Report& report) noexcept;

}  // namespace stillpoint::lint
