#pragma once
// Reading ahead from memory to the CPU's caches. The hardware does it within a page and stops at its end; where
// pages are taken in no order, each costs some misses that software can have under way already.

#include <cstddef>

namespace stillpoint::arch {

/// Asks for [begin, begin + bytes), which need not be mapped. Never waits. Always inline, and so must be a function that does nothing else:
/// GCC leaves calls out of which it believes that they have no effect.
[[gnu::always_inline]] inline void prefetch(const std::byte* begin, std::size_t bytes) noexcept
{
    constexpr std::size_t line_bytes = 64;
    for (std::size_t at = 0; at < bytes; at += line_bytes) {
        __builtin_prefetch(begin + at, 0, 0);
    }
}

}  // namespace stillpoint::arch
