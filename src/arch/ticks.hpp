#pragma once
// The CPU's own clock: it needs no system call and no shared memory. Whether all CPUs agree on it is a question for
// steady_ticks(), and for the operating system (logs/commit_clock.cpp asks it).

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace stillpoint::arch {

/// Now, in ticks. Earlier instructions of the thread are complete before it is read; later ones may begin before.
[[gnu::always_inline]] inline std::uint64_t ticks() noexcept
{
#if defined(__x86_64__)
    unsigned processor = 0;
    return __rdtscp(&processor);
#elif defined(__aarch64__)
    std::uint64_t now = 0;
    asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(now) : : "memory");
    return now;
#endif
}

/// Not later than now, in ticks: the CPU may read its clock before earlier instructions are complete, and need not wait for them.
[[gnu::always_inline]] inline std::uint64_t ticks_at_least() noexcept
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    std::uint64_t now = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#endif
}

/// Later loads of the thread begin after its last ticks(): the CPU may begin them before, since they do not need the result.
[[gnu::always_inline]] inline void order_loads_after_ticks() noexcept
{
#if defined(__x86_64__)
    _mm_lfence();
#elif defined(__aarch64__)
    asm volatile("isb" : : : "memory");
#endif
}

/// The CPU says that its clock runs at one rate in all states of power, and has the instruction that reads it in order.
[[nodiscard]] inline bool steady_ticks() noexcept
{
#if defined(__x86_64__)
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    constexpr unsigned rdtscp_bit = 1u << 27;
    constexpr unsigned invariant_bit = 1u << 8;
    const bool has_rdtscp = __get_cpuid(0x8000'0001, &eax, &ebx, &ecx, &edx) != 0 && (edx & rdtscp_bit) != 0;
    return has_rdtscp && __get_cpuid(0x8000'0007, &eax, &ebx, &ecx, &edx) != 0 && (edx & invariant_bit) != 0;
#else
    return true;  // AArch64's system counter is one for all CPUs.
#endif
}

}  // namespace stillpoint::arch
