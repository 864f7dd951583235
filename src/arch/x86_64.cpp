#if defined(__x86_64__)

#include "arch/x86_64.hpp"

#include <cpuid.h>
#include <immintrin.h>

namespace stillpoint::arch {

namespace {

/// CPUID leaf 7, subleaf 0, EBX.
unsigned leaf7_ebx() noexcept
{
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 ? ebx : 0;
}

void copy_sse2(void* to, const void* from, std::size_t size) noexcept
{
    auto* target = static_cast<__m128i*>(to);
    const auto* source = static_cast<const __m128i*>(from);
    for (std::size_t done = 0; done < size; done += X86_64::line_bytes) {
        const __m128i a = _mm_loadu_si128(source);
        const __m128i b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2);
        const __m128i d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
        target += 4;
        source += 4;
    }
}

__attribute__((target("avx"))) void copy_avx(void* to, const void* from, std::size_t size) noexcept
{
    auto* target = static_cast<__m256i*>(to);
    const auto* source = static_cast<const __m256i*>(from);
    for (std::size_t done = 0; done < size; done += X86_64::line_bytes) {
        const __m256i a = _mm256_loadu_si256(source);
        const __m256i b = _mm256_loadu_si256(source + 1);
        _mm256_stream_si256(target, a);
        _mm256_stream_si256(target + 1, b);
        target += 2;
        source += 2;
    }
}

}  // namespace

bool X86_64::has(WriteBack method) noexcept
{
    constexpr unsigned clflushopt_bit = 1u << 23;
    constexpr unsigned clwb_bit = 1u << 24;
    switch (method) {
    case WriteBack::clwb: return (leaf7_ebx() & clwb_bit) != 0;
    case WriteBack::clflushopt: return (leaf7_ebx() & clflushopt_bit) != 0;
    case WriteBack::clflush: return true;
    }
    return false;
}

X86_64::X86_64(WriteBack method) noexcept : method_(method), copy_(copy_sse2)
{
    __builtin_cpu_init();  // A preloaded library is here before the constructor that would do it.
    // The library call also asks the operating system whether it saves AVX registers.
    if (__builtin_cpu_supports("avx")) {
        copy_ = copy_avx;
    }
}

X86_64 X86_64::detect() noexcept
{
    for (const auto method : {WriteBack::clwb, WriteBack::clflushopt}) {
        if (has(method)) {
            return X86_64{method};
        }
    }
    return X86_64{WriteBack::clflush};
}

std::string_view X86_64::write_back_name() const noexcept
{
    switch (method_) {
    case WriteBack::clwb: return "clwb";
    case WriteBack::clflushopt: return "clflushopt";
    case WriteBack::clflush: return "clflush";
    }
    return "";
}

}  // namespace stillpoint::arch

#endif
