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
