#pragma once
// Checksums: XXH3 from the xxhash library, inlined so that the preloaded library exports none
// of its symbols (docs/internals/decisions/xxhash.md).

#include <cstddef>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stillpoint {

namespace detail {

/// As checksum64(), by the widest vector unit that this CPU has: half the time of the baseline's for a page.
[[nodiscard]] std::uint64_t checksum_of_many(const void* data, std::size_t size, std::uint64_t seed) noexcept;

inline constexpr std::size_t few_bytes = 240;  ///< up to so many XXH3 uses no vectors

}  // namespace detail

/// 64-bit checksum of `size` bytes. `seed` binds the bytes to their place (page number, epoch),
/// so that a valid block found in the wrong place does not pass.
inline std::uint64_t checksum64(const void* data, std::size_t size, std::uint64_t seed) noexcept
{
    return size <= detail::few_bytes ? XXH3_64bits_withSeed(data, size, seed) : detail::checksum_of_many(data, size, seed);
}

/// 64-bit mix of two words, for digests over sets.
inline std::uint64_t mix64(std::uint64_t a, std::uint64_t b) noexcept
{
    const std::uint64_t words[2] = {a, b};
    return XXH3_64bits(words, sizeof words);
}

}  // namespace stillpoint
