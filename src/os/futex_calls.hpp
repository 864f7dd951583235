#pragma once
// The system call futex: sleep while a word has a value, wake sleepers.

#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/sync.hpp"

namespace stillpoint::os {

/// Sleeps while `word` is `expected`, until woken or until `deadline_ns` on the monotonic clock
/// (UINT64_MAX: no deadline). May return for no reason. Preserves errno.
inline void futex_wait(const sync::Atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t deadline_ns = UINT64_MAX) noexcept
{
    const int saved_errno = errno;
    timespec deadline{};
    timespec* timeout = nullptr;
    if (deadline_ns != UINT64_MAX) {
        deadline.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000u);
        deadline.tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000u);
        timeout = &deadline;
    }
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, timeout, nullptr,
            FUTEX_BITSET_MATCH_ANY);  // The bitset form takes an absolute monotonic deadline.
    errno = saved_errno;
}

/// Returns how many it has woken.
inline long futex_wake(const sync::Atomic<std::uint32_t>& word, int threads = INT_MAX) noexcept
{
    const int saved_errno = errno;
    const long woken = syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, threads, nullptr, nullptr, 0);
    errno = saved_errno;
    return woken;
}

}  // namespace stillpoint::os
