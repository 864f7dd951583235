#pragma once
// The bytes that a thread has changed in a page, found by comparing its private page with the twin that was kept when the page became
// private [NVthreads §2, "uses the operating system's copy-on-write mechanism"; Dthreads, by which that works]. Bytes are compared, so
// that two threads may change one page under two locks.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/units.hpp"

namespace stillpoint::nvthreads::processes {

namespace page_merge {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

[[nodiscard]] inline std::uint64_t word_at(const std::byte* page, std::size_t at) noexcept
{
    std::uint64_t word;
    std::memcpy(&word, page + at, sizeof word);
    return word;
}

/// Bytes that differ, as 0xff each.
[[nodiscard]] constexpr std::uint64_t differing(std::uint64_t one, std::uint64_t other) noexcept
{
    constexpr std::uint64_t low_bits = 0x7f7f'7f7f'7f7f'7f7f;
    const std::uint64_t difference = one ^ other;
    // Bit 7 of each byte that is not 0, without carries between bytes.
    const std::uint64_t marks = (((difference & low_bits) + low_bits) | difference) & ~low_bits;
    return (marks >> 7) * 0xff;
}

}  // namespace page_merge

/// Calls visit(begin, end) for each run of bytes in which the page differs from its twin.
template <class Visit>
void visit_differences(const std::byte* page, const std::byte* twin, Visit&& visit) noexcept
{
    std::size_t begin = page_bytes;  // of the open run; page_bytes: there is none
    for (std::size_t at = 0; at < page_bytes; at += page_merge::word_bytes) {
        const std::uint64_t mask = page_merge::differing(page_merge::word_at(page, at), page_merge::word_at(twin, at));
        if (mask == ~std::uint64_t{0}) {
            begin = begin == page_bytes ? at : begin;
            continue;
        }
        for (std::size_t byte = 0; byte < page_merge::word_bytes && (mask != 0 || begin != page_bytes); ++byte) {
            const bool differs = ((mask >> (8 * byte)) & 1) != 0;
            if (differs && begin == page_bytes) {
                begin = at + byte;
            } else if (!differs && begin != page_bytes) {
                visit(begin, at + byte);
                begin = page_bytes;
            }
            if (mask == 0) {
                break;
            }
        }
    }
    if (begin != page_bytes) {
        visit(begin, page_bytes);
    }
}

/// Brings what others have merged into `shared` since the page became private: bytes that this thread has not changed. Page and twin have
/// them afterwards.
inline void take_changes_of_others(std::byte* page, std::byte* twin, const std::byte* shared) noexcept
{
    for (std::size_t at = 0; at < page_bytes; at += page_merge::word_bytes) {
        const std::uint64_t before = page_merge::word_at(twin, at);
        const std::uint64_t now = page_merge::word_at(shared, at);
        const std::uint64_t changed = page_merge::differing(before, now);
        if (changed == 0) {
            continue;
        }
        const std::uint64_t own = page_merge::word_at(page, at);
        const std::uint64_t taken = changed & ~page_merge::differing(own, before);
        const std::uint64_t word = (own & ~taken) | (now & taken);
        const std::uint64_t new_twin = (before & ~taken) | (now & taken);
        std::memcpy(page + at, &word, sizeof word);
        std::memcpy(twin + at, &new_twin, sizeof new_twin);
    }
}

/// The first byte in [begin, end) that another thread has changed since the twin was made, to another value than this thread; `end`: none.
[[nodiscard]] inline std::size_t find_race(const std::byte* page, const std::byte* twin, const std::byte* shared, std::size_t begin,
                                           std::size_t end) noexcept
{
    for (std::size_t at = begin; at < end; ++at) {
        if (shared[at] != twin[at] && shared[at] != page[at]) {
            return at;
        }
    }
    return end;
}

}  // namespace stillpoint::nvthreads::processes
