#pragma once
// Growth policy: how large an image becomes when it must grow. Pure arithmetic.
//
// A small image doubles; from 1 GiB on it grows by 1 GiB; from 8 GiB on by an eighth of itself.
// The last rule keeps the number of segments small: fixed steps of 1 GiB would need 1024 of
// them for 1 TiB. From the smallest image (4 MiB) to 1 TiB this takes 8 doublings, 7 steps of
// 1 GiB and 42 steps of an eighth: with the first segment 58 of the 64 that a superblock holds.
// A larger first size or a larger request only skips steps, since next_image_bytes() grows
// with its first argument.

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
    const std::uint64_t step = std::max(std::min(current, gib), current / 8);
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

static_assert(segments_to_maximum(4 * mib, window_bytes) == 57);

}  // namespace stillpoint::growth
