#pragma once
// The lock that the runtime itself uses: never an intercepted one, so taking it is not a FASE and it
// works inside every interposed call.

#include <cstdint>

#include "core/sync.hpp"
#include "os/futex_calls.hpp"

namespace stillpoint::os {

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
    sync::Atomic<std::uint32_t> state_{free_state};
};

}  // namespace stillpoint::os
