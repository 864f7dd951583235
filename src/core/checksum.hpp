#pragma once
// Checksums: XXH3 from the xxhash library, inlined so that the preloaded library exports none
// of its symbols (docs/decisions/xxhash.md).

#include <cstddef>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stillpoint {

/// 64-bit checksum of `size` bytes. `seed` binds the bytes to their place (page number, epoch),
/// so that a valid block found in the wrong place does not pass.
inline std::uint64_t checksum64(const void* data, std::size_t size, std::uint64_t seed) noexcept
{
    return XXH3_64bits_withSeed(data, size, seed);
}

/// 64-bit mix of two words, for digests over sets.
inline std::uint64_t mix64(std::uint64_t a, std::uint64_t b) noexcept
{
    const std::uint64_t words[2] = {a, b};
    return XXH3_64bits(words, sizeof words);
}

}  // namespace stillpoint
