#pragma once
// Clocks.

#include <cstdint>
#include <ctime>

namespace stillpoint::os {

/// Monotonic time in nanoseconds. Async-signal-safe.
inline std::uint64_t monotonic_ns() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

/// The moment that many milliseconds from now. UINT64_MAX, which never comes: the time is negative, or too long for the clock.
inline std::uint64_t deadline_after_ms(std::int64_t timeout_ms) noexcept
{
    constexpr std::uint64_t ns_per_ms = 1'000'000;
    const std::uint64_t now_ns = monotonic_ns();
    const bool for_ever = timeout_ms < 0 || static_cast<std::uint64_t>(timeout_ms) > (UINT64_MAX - now_ns) / ns_per_ms;
    return for_ever ? UINT64_MAX : now_ns + static_cast<std::uint64_t>(timeout_ms) * ns_per_ms;
}

/// CPU time of the calling thread in nanoseconds.
inline std::uint64_t thread_cpu_ns() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Wall-clock time in nanoseconds since 1970: for facts that another run reads.
inline std::uint64_t wall_clock_ns() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace stillpoint::os
