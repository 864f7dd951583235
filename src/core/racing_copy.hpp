#pragma once
// A copy of memory that other threads may be writing, or that ThreadSanitizer cannot know they are not.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/sanitizers.hpp"

namespace stillpoint {

/// memcpy, of whole words, that ThreadSanitizer does not judge. The caller says why the race is none, or harmless.
STILLPOINT_NO_THREAD_SANITIZER inline void racing_copy(std::byte* destination, const std::byte* source, std::size_t size) noexcept
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

}  // namespace stillpoint
