#pragma once
// Copies of much memory that the caches would not hold: the target's old bytes need not be read first, and what the program has in the
// caches stays there.

#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace stillpoint::arch {

/// Copies `size` bytes, a multiple of 64, between addresses that are multiples of 16. Other threads may see them late: end_streaming()
/// follows in this thread before it tells one of the copy.
inline void copy_streaming(void* to, const void* from, std::size_t size) noexcept
{
#if defined(__x86_64__)
    constexpr std::size_t line_vectors = 4;
    auto* target = static_cast<__m128i*>(to);
    const auto* source = static_cast<const __m128i*>(from);
    for (const auto* const end = source + size / sizeof(__m128i); source != end; source += line_vectors, target += line_vectors) {
        const __m128i a = _mm_load_si128(source);
        const __m128i b = _mm_load_si128(source + 1);
        const __m128i c = _mm_load_si128(source + 2);
        const __m128i d = _mm_load_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
#else
    std::memcpy(to, from, size);
#endif
}

inline void end_streaming() noexcept
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

}  // namespace stillpoint::arch
