#pragma once
// CommitClock: the physical timestamps that order transactions [SPHT §3.1]. Any number of threads read it without meeting.

#include <cstdint>

#include "arch/ticks.hpp"
#include "logs/redo_layout.hpp"
#include "os/clock.hpp"

namespace stillpoint::logs {

class CommitClock {
public:
    /// From now on timestamps are later than `after`, the newest that an earlier run of the pool has given. The CPU's clock is taken
    /// where it runs at one rate and the kernel trusts it; else the kernel's, which rises across all threads too, at some
    /// 20 ns more a look.
    void start(Timestamp after) noexcept;

    /// Async-signal-safe. Two looks, one after the other, may give the same.
    [[nodiscard]] Timestamp now() const noexcept { return offset_ + (uses_ticks_ ? arch::ticks() : os::monotonic_ns()); }
    /// Now, for a thread that then reads memory as of this moment: no later load of it sees an older state.
    [[nodiscard]] Timestamp moment() const noexcept
    {
        const Timestamp seen = now();
        arch::order_loads_after_ticks();
        return seen;
    }
    [[nodiscard]] bool uses_ticks() const noexcept { return uses_ticks_; }

private:
    bool uses_ticks_ = false;
    std::uint64_t offset_ = 0;  ///< what is added to the clock's own value; it may wrap
};

}  // namespace stillpoint::logs
