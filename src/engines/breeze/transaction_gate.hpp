#pragma once
// Transactions pass a gate when they begin, and have a number until they end: that of their log. A collection shuts the gate for a moment,
// when none is running.
//
// Each number has a line of its own, so threads that keep to their numbers share no line that is written. publish and check, as FASEs do:
//   a transaction: takes its number; looks whether the gate is shut, and then gives it back.
//   a collection: shuts the gate; looks whether a number is taken.
// Both are sequentially consistent, so one of the two sees the other. A thread that waits counts itself first and then looks again; one
// that gives a number back looks for waiters afterwards.

#include <array>
#include <cstdint>

#include "core/sync.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"

namespace stillpoint::breeze {

class TransactionGate {
public:
    /// A number below logs_max, if it is free `wanted`. Waits while the gate is shut or all are taken.
    [[nodiscard]] unsigned enter(unsigned wanted) noexcept
    {
        for (;;) {
            for (unsigned i = 0; i < logs_max; ++i) {
                const unsigned number = (wanted + i) % logs_max;
                if (!take(number)) {
                    continue;
                }
                if (!is_shut()) {
                    return number;
                }
                leave(number);
                break;
            }
            wait_for_room();
        }
    }
    void leave(unsigned number) noexcept
    {
        numbers_[number].taken.exchange(0, std::memory_order_seq_cst);
        if (waiters_.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
            tell_change();
        }
    }
    /// Shuts the gate and waits until no transaction runs. A thread that is held may have a lock that a running one needs, so an attempt
    /// ends after `attempt_ns` with the gate open: false.
    [[nodiscard]] bool shut(std::uint64_t attempt_ns) noexcept
    {
        const std::uint64_t deadline_ns = os::monotonic_ns() + attempt_ns;
        shut_.store(1, std::memory_order_seq_cst);
        waiters_.fetch_add(1, std::memory_order_seq_cst);
        bool is_late = false;
        for (;;) {
            const std::uint32_t seen = changes_.load(std::memory_order_acquire);
            if (!is_busy()) {
                break;
            }
            is_late = os::monotonic_ns() >= deadline_ns;
            if (is_late) {
                break;
            }
            os::futex_wait(changes_, seen, deadline_ns);
        }
        waiters_.fetch_sub(1, std::memory_order_seq_cst);
        if (is_late) {
            open();
        }
        return !is_late;
    }
    void open() noexcept
    {
        shut_.store(0, std::memory_order_seq_cst);
        tell_change();
    }
    [[nodiscard]] bool is_busy() const noexcept
    {
        for (const Number& number : numbers_) {
            if (number.taken.load(std::memory_order_seq_cst) != 0) {
                return true;
            }
        }
        return false;
    }

private:
    struct alignas(2 * cache_line_bytes) Number {  // Neighbouring lines are fetched in pairs.
        sync::Atomic<std::uint32_t> taken{0};
    };

    [[nodiscard]] bool is_shut() const noexcept { return shut_.load(std::memory_order_seq_cst) != 0; }
    [[nodiscard]] bool take(unsigned number) noexcept
    {
        auto& taken = numbers_[number].taken;
        return taken.load(std::memory_order_relaxed) == 0 && taken.exchange(1, std::memory_order_seq_cst) == 0;
    }
    [[nodiscard]] bool has_room() const noexcept
    {
        if (is_shut()) {
            return false;
        }
        for (const Number& number : numbers_) {
            if (number.taken.load(std::memory_order_seq_cst) == 0) {
                return true;
            }
        }
        return false;
    }
    void wait_for_room() noexcept
    {
        waiters_.fetch_add(1, std::memory_order_seq_cst);
        const std::uint32_t seen = changes_.load(std::memory_order_acquire);
        if (!has_room()) {
            os::futex_wait(changes_, seen);
        }
        waiters_.fetch_sub(1, std::memory_order_seq_cst);
    }
    void tell_change() noexcept
    {
        changes_.fetch_add(1, std::memory_order_release);
        os::futex_wake(changes_);
    }

    std::array<Number, logs_max> numbers_;
    /// Read by each transaction, written rarely, as are the next.
    alignas(2 * cache_line_bytes) sync::Atomic<std::uint32_t> shut_{0};
    sync::Atomic<std::uint32_t> waiters_{0};
    sync::Atomic<std::uint32_t> changes_{0};
};

}  // namespace stillpoint::breeze
