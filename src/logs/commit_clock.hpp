#pragma once
// CommitClock: the timestamps that order transactions. Physical ones [SPHT §3.1]: any number of threads read them without meeting. Or
// those of a counter that every commit increments [SPHT §2, "Ordering transactions in the logs"], as in DudeTM and TinySTM.

#include <atomic>
#include <cstdint>

#include "arch/ticks.hpp"
#include "logs/redo_layout.hpp"
#include "os/clock.hpp"

namespace stillpoint::logs {

enum class ClockKind : std::uint8_t { physical, counter };

class CommitClock {
public:
    /// Between two numbers of the counter; each has an even timestamp and an odd one, of which a transaction takes one.
    static constexpr Timestamp counter_step = 2;

    /// From now on timestamps are later than `after`, the newest that an earlier run of the pool has given. The CPU's clock is taken
    /// where it runs at one rate and the kernel trusts it; else the kernel's, which rises across all threads too, at some
    /// 20 ns more a look.
    void start(Timestamp after, ClockKind kind = ClockKind::physical) noexcept;

    /// Async-signal-safe. Two looks, one after the other, may give the same.
    [[nodiscard]] Timestamp now() const noexcept { return uses_ticks_ ? offset_ + arch::ticks() : now_without_ticks(); }
    /// Not later than now(), and cheaper: it waits for no earlier instruction.
    [[nodiscard]] Timestamp lower_bound() const noexcept { return uses_ticks_ ? offset_ + arch::ticks_at_least() : now_without_ticks(); }
    /// A timestamp for a transaction: with a counter it is given once, and later than all that were.
    [[nodiscard]] Timestamp next() noexcept { return uses_ticks_ ? offset_ + arch::ticks() : next_without_ticks(); }
    /// Now, for a thread that then reads memory as of this moment: no later load of it sees an older state.
    [[nodiscard]] Timestamp moment() const noexcept
    {
        if (!uses_ticks_) {
            // Later than both timestamps of the counter's number.
            return now_without_ticks() + (kind_ == ClockKind::counter ? counter_step : 0);
        }
        const Timestamp seen = now();
        arch::order_loads_after_ticks();
        return seen;
    }
    [[nodiscard]] bool uses_ticks() const noexcept { return uses_ticks_; }

private:
    [[nodiscard]] Timestamp now_without_ticks() const noexcept
    {
        return kind_ == ClockKind::counter ? counter_.load(std::memory_order_acquire) : offset_ + os::monotonic_ns();
    }
    [[nodiscard]] Timestamp next_without_ticks() noexcept
    {
        return kind_ == ClockKind::counter ? counter_.fetch_add(counter_step, std::memory_order_acq_rel) + counter_step
                                           : now_without_ticks();
    }

    bool uses_ticks_ = false;
    ClockKind kind_ = ClockKind::physical;
    std::uint64_t offset_ = 0;  ///< what is added to the clock's own value; it may wrap
    alignas(128) std::atomic<Timestamp> counter_{0};
};

}  // namespace stillpoint::logs
