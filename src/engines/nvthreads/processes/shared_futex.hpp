#pragma once
// Futexes in memory that several processes map, and a lock made of one whose holder is known: when a process dies, the supervisor gives
// back what it held.

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "arch/spin.hpp"
#include "os/direct_call.hpp"

namespace stillpoint::nvthreads::processes {

using SharedWord = std::atomic<std::uint32_t>;

/// Sleeps while `word` is `expected`, at most `ns` nanoseconds (UINT64_MAX: no limit). May return for no reason. Keeps errno.
inline void shared_wait(const SharedWord& word, std::uint32_t expected, std::uint64_t ns = UINT64_MAX) noexcept
{
    const timespec limit{static_cast<time_t>(ns / 1'000'000'000u), static_cast<long>(ns % 1'000'000'000u)};
    const timespec* const timeout = ns == UINT64_MAX ? nullptr : &limit;
    static_cast<void>(
        os::direct_call_result(SYS_futex, os::as_argument(&word), FUTEX_WAIT, static_cast<long>(expected), os::as_argument(timeout), 0, 0));
}

inline void shared_wake(const SharedWord& word, int count = INT_MAX) noexcept
{
    static_cast<void>(os::direct_call_result(SYS_futex, os::as_argument(&word), FUTEX_WAKE, count, 0, 0, 0));
}

/// The holder is a thread's number, from 1.
class OwnedLock {
public:
    void lock(std::uint32_t holder) noexcept
    {
        for (int spins = 0; spins < spins_max; ++spins) {
            std::uint32_t seen = 0;
            if (word_.compare_exchange_weak(seen, holder, std::memory_order_acquire)) {
                return;
            }
            arch::spin_pause();
        }
        while (true) {
            std::uint32_t seen = 0;
            if (word_.compare_exchange_strong(seen, holder | waited_for, std::memory_order_acquire)) {
                return;
            }
            if ((seen & waited_for) == 0 && !word_.compare_exchange_strong(seen, seen | waited_for, std::memory_order_relaxed)) {
                continue;
            }
            shared_wait(word_, seen | waited_for);
        }
    }
    void unlock() noexcept
    {
        if ((word_.exchange(0, std::memory_order_release) & waited_for) != 0) {
            shared_wake(word_, 1);
        }
    }
    /// `thread` died. It held the lock, or may have been woken last, or was to wake another: one that waits looks again.
    void release_for_dead(std::uint32_t thread) noexcept
    {
        if (holder() == thread) {
            unlock();
        }
        shared_wake(word_, 1);
    }
    [[nodiscard]] std::uint32_t holder() const noexcept { return word_.load(std::memory_order_acquire) & ~waited_for; }

private:
    static constexpr std::uint32_t waited_for = 1u << 31;
    static constexpr int spins_max = 200;
    SharedWord word_{0};
};

class Held {
public:
    Held(OwnedLock& lock, std::uint32_t holder) noexcept : lock_(lock) { lock_.lock(holder); }
    ~Held() { lock_.unlock(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

private:
    OwnedLock& lock_;
};

}  // namespace stillpoint::nvthreads::processes
