#pragma once
// Growth policy: how large an image becomes when it must grow. Pure arithmetic.
//
// A small image doubles; from 64 MiB on it grows by 64 MiB, and from 320 MiB on by a fifth of itself, so that little of the file lies
// unused. Fixed steps would need too many segments: from the smallest image (4 MiB) to 1 TiB this takes 4 doublings, 4 steps of
// 64 MiB and 45 steps of a fifth: with the first segment 54 of the 64 that a superblock holds. A larger first size or a larger request
// only skips steps, since next_image_bytes() grows with its first argument.

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
    const std::uint64_t step = std::max(std::min(current, small), current / 5);
    return std::min(round_up(current + step, granule_bytes), maximum);
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

static_assert(segments_to_maximum(4 * mib, window_bytes) == 53);

}  // namespace stillpoint::growth
