#pragma once
// Growth policy: how large an image becomes when it must grow. Pure arithmetic.
//
// A small image doubles, up to 64 MiB; from there on it grows by a fifth of itself, so that little of the file lies unused. From the
// smallest image (4 MiB) to 1 TiB this takes 4 doublings and 54 steps of a fifth: with the first segment 59 of the 64 that a superblock
// holds. A larger first size or a larger request only skips steps, since next_image_bytes() grows with its first argument.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/units.hpp"

namespace stillpoint::growth {

/// Sizes that the policy chooses (not the maximum, not the first size) are multiples of this.
inline constexpr std::uint64_t granule_bytes = mib;

/// Size after `current` where no call asks for more. `current` <= `maximum` <= window_bytes.
[[nodiscard]] constexpr std::uint64_t next_image_bytes(std::uint64_t current, std::uint64_t maximum) noexcept
{
    constexpr std::uint64_t small = 64 * mib;
    const std::uint64_t next = std::max(std::min(2 * current, small), current + current / 5);
    return std::min(round_up(next, granule_bytes), maximum);
}

/// Segments that the policy still appends on the way from `current` to `maximum`.
[[nodiscard]] constexpr std::size_t segments_to_maximum(std::uint64_t current, std::uint64_t maximum) noexcept
{
    std::size_t count = 0;
    for (; current < maximum; current = next_image_bytes(current, maximum)) {
        ++count;
    }
    return count;
}

/// The next size where only so many segments are left, from 1: for small requests a pool may have used up many. Then several steps at once.
[[nodiscard]] constexpr std::uint64_t next_of_few(std::uint64_t current, std::uint64_t maximum, std::size_t segments_left) noexcept
{
    std::uint64_t next = next_image_bytes(current, maximum);
    while (next < maximum && 1 + segments_to_maximum(next, maximum) > segments_left) {
        next = next_image_bytes(next, maximum);
    }
    return next;
}

static_assert(segments_to_maximum(4 * mib, window_bytes) == 58);

}  // namespace stillpoint::growth
