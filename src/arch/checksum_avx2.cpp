// Compiled with -mavx2 (cmake/Layers.cmake): nothing but XXH3 may be included, since the linker could take a copy of another inline
// function from here for all others.

#include "arch/checksum_vectors.hpp"

#if defined(__AVX2__)

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stillpoint::detail {

std::uint64_t checksum_by_avx2(const void* data, std::size_t size, std::uint64_t seed) noexcept
{
    return XXH3_64bits_withSeed(data, size, seed);
}

}  // namespace stillpoint::detail

#endif
