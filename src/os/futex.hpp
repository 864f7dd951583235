#pragma once
// Futex wait and wake, and the lock that the runtime itself uses: never an intercepted one, so
// taking it is not a FASE and it works inside every interposed call.

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.hpp"

namespace stillpoint::os {

/// Sleeps while `word` is `expected`, until woken or until `deadline_ns` on the monotonic clock
/// (UINT64_MAX: no deadline). May return for no reason. Preserves errno.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::uint64_t deadline_ns = UINT64_MAX) noexcept
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

inline void futex_wake(const std::atomic<std::uint32_t>& word, int threads = INT_MAX) noexcept
{
    const int saved_errno = errno;
    syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, threads, nullptr, nullptr, 0);
    errno = saved_errno;
}

/// A lock with the BasicLockable interface. Zero-initialised is free; constant-initialised, so
/// that it can be used before constructors run.
class FutexLock {
public:
    void lock() noexcept
    {
        std::uint32_t seen = free_state;
        if (state_.compare_exchange_strong(seen, held, std::memory_order_acquire)) {
            return;
        }
        while (state_.exchange(held_with_waiters, std::memory_order_acquire) != free_state) {
            futex_wait(state_, held_with_waiters);
        }
    }
    bool try_lock() noexcept
    {
        std::uint32_t seen = free_state;
        return state_.compare_exchange_strong(seen, held, std::memory_order_acquire);
    }
    void unlock() noexcept
    {
        if (state_.exchange(free_state, std::memory_order_release) == held_with_waiters) {
            futex_wake(state_, 1);
        }
    }
    /// In a child after fork: the holder may be a thread that does not exist here.
    void reset_after_fork() noexcept { state_.store(free_state, std::memory_order_relaxed); }

private:
    static constexpr std::uint32_t free_state = 0;
    static constexpr std::uint32_t held = 1;
    static constexpr std::uint32_t held_with_waiters = 2;
    std::atomic<std::uint32_t> state_{free_state};
};

}  // namespace stillpoint::os
