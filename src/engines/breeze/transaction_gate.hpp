#pragma once
// Transactions pass a gate when they begin; a collection shuts it for a moment, when none is running.

#include <cstdint>

#include "core/sync.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"

namespace stillpoint::breeze {

class TransactionGate {
public:
    void enter() noexcept
    {
        for (;;) {
            std::uint32_t seen = state_.load(std::memory_order_acquire);
            if ((seen & shut_bit) != 0) {
                os::futex_wait(state_, seen);
            } else if (state_.compare_exchange_strong(seen, seen + 1, std::memory_order_acq_rel)) {
                return;
            }
        }
    }
    void leave() noexcept
    {
        if (state_.fetch_sub(1, std::memory_order_acq_rel) == (shut_bit | 1)) {
            os::futex_wake(state_);
        }
    }
    /// Shuts the gate and waits until no transaction runs. A thread that is held may have a lock that a running one needs, so an attempt
    /// ends after `attempt_ns` with the gate open: false.
    [[nodiscard]] bool shut(std::uint64_t attempt_ns) noexcept
    {
        const std::uint64_t deadline_ns = os::monotonic_ns() + attempt_ns;
        state_.fetch_or(shut_bit, std::memory_order_acq_rel);
        for (std::uint32_t seen = state_.load(std::memory_order_acquire); seen != shut_bit; seen = state_.load(std::memory_order_acquire)) {
            if (os::monotonic_ns() >= deadline_ns) {
                open();
                return false;
            }
            os::futex_wait(state_, seen, deadline_ns);
        }
        return true;
    }
    void open() noexcept
    {
        state_.fetch_and(~shut_bit, std::memory_order_acq_rel);
        os::futex_wake(state_);
    }
    [[nodiscard]] bool is_busy() const noexcept { return (state_.load(std::memory_order_acquire) & ~shut_bit) != 0; }

private:
    static constexpr std::uint32_t shut_bit = std::uint32_t{1} << 31;
    sync::Atomic<std::uint32_t> state_{0};  ///< running transactions, and the bit
};

}  // namespace stillpoint::breeze
