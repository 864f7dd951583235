#include "clock.hpp"

#include <sys/resource.h>
#include <time.h>

namespace bench {

std::uint64_t monotonic_ns() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t process_cpu_ns() noexcept
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto ns = [](const timeval& time) {
        return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_usec) * 1000u;
    };
    return ns(used.ru_utime) + ns(used.ru_stime);
}

}  // namespace bench
