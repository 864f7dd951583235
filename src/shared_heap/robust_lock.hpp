#pragma once
// A lock in shared memory whose holder may die: a waiter looks now and then whether the holder's process exists.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stillpoint::shared_heap {

/// BasicLockable. Zero bytes are free.
class RobustLock {
public:
    void lock() noexcept
    {
        const auto own = static_cast<std::uint32_t>(own_process());
        for (int tried = 0;; ++tried) {
            std::uint32_t seen = 0;
            if (holder_.compare_exchange_strong(seen, own, std::memory_order_acquire)) {
                return;
            }
            constexpr int spins_max = 100;
            if (tried < spins_max) {
                continue;
            }
            waiters_.fetch_add(1, std::memory_order_seq_cst);
            constexpr long look_ns = 20'000'000;
            const timespec limit{0, look_ns};
            const int saved_errno = errno;
            const bool timed_out = syscall(SYS_futex, &holder_, FUTEX_WAIT, seen, &limit, nullptr, 0) != 0 && errno == ETIMEDOUT;
            if (timed_out && kill(static_cast<pid_t>(seen), 0) != 0 && errno == ESRCH) {
                holder_.compare_exchange_strong(seen, 0, std::memory_order_acq_rel);
            }
            errno = saved_errno;
            waiters_.fetch_sub(1, std::memory_order_seq_cst);
        }
    }
    void unlock() noexcept
    {
        holder_.store(0, std::memory_order_seq_cst);
        if (waiters_.load(std::memory_order_seq_cst) != 0) {
            const int saved_errno = errno;
            syscall(SYS_futex, &holder_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
            errno = saved_errno;
        }
    }
    /// In the process of a new thread.
    static void forget_process() noexcept { process_ = 0; }

private:
    static pid_t own_process() noexcept
    {
        if (process_ == 0) {
            process_ = getpid();
        }
        return process_;
    }
    static inline pid_t process_ = 0;  ///< private to the process

    std::atomic<std::uint32_t> holder_;
    std::atomic<std::uint32_t> waiters_;
};

}  // namespace stillpoint::shared_heap
