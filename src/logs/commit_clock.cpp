#include "logs/commit_clock.hpp"

#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace stillpoint::logs {

namespace {

/// The kernel takes the TSC off this list when it finds that CPUs differ.
bool kernel_trusts_ticks() noexcept
{
#if defined(__x86_64__)
    const int fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    char names[256] = {};
    const auto bytes = read(fd, names, sizeof names - 1);
    close(fd);
    return bytes > 0 && std::strstr(names, "tsc") != nullptr;
#else
    return true;
#endif
}

}  // namespace

void CommitClock::start(Timestamp after, ClockKind kind) noexcept
{
    kind_ = kind;
    uses_ticks_ = kind == ClockKind::physical && arch::steady_ticks() && kernel_trusts_ticks();
    counter_.store(round_up(after + 1, counter_step), std::memory_order_relaxed);
    offset_ = 0;
    offset_ = after + 1 - now();
}

}  // namespace stillpoint::logs
