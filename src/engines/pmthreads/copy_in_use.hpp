#pragma once
// Copies of memory that the program may be writing.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/sanitizers.hpp"

namespace stillpoint::pmthreads {

/// Copies a page, or a line, that the program may be writing: a race on purpose. What is written meanwhile is found by the next
/// look and copied again. The copy in a stop is not this one, and ThreadSanitizer judges it.
template <std::size_t size>
STILLPOINT_NO_THREAD_SANITIZER void copy_in_use(std::byte* destination, const std::byte* source) noexcept
{
    if constexpr (thread_sanitizer) {
        // Not by memcpy, which the sanitizer replaces.
        const auto* const from = reinterpret_cast<const volatile std::uint64_t*>(source);
        auto* const to = reinterpret_cast<std::uint64_t*>(destination);
        for (std::size_t word = 0; word < size / sizeof(std::uint64_t); ++word) {
            to[word] = from[word];
        }
    } else {
        std::memcpy(destination, source, size);
    }
}

}  // namespace stillpoint::pmthreads
