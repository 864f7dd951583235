#pragma once
// Pauses between small pieces of a checkpoint's work beside the running program.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/thread_calls.hpp"

namespace stillpoint::pmthreads {

/// A checkpoint of some thousand pages takes milliseconds. Where each CPU has a thread of the program to run, one of those
/// waits that long if it is done in one go, since the scheduler lets a thread use up its slice: 4 or 8 ms, where the kernel's clock ticks
/// 250 times a second. So the checkpoint thread works for `work_ns` and sleeps up to three times as long: shorter, where the turn before
/// took so much CPU time that this one would not be done by its deadline. What is left at the deadline is done without a pause.
///
/// Work without pauses gives way each `work_ns` to a thread that waits for this CPU. A server's thread answers, and waits for its client: a
/// hundred microseconds later the work goes on. A thread that computes would keep the CPU for its slice each time: once one has, no way is
/// given for some turns.
/// Threads: one.
class Pacer {
public:
    /// `wakes`: the futex whose change ends a pause. `hurry`: no more pauses while it is true.
    Pacer(std::atomic<std::uint32_t>& wakes, const std::atomic<bool>& hurry) noexcept : wakes_(wakes), hurry_(hurry) {}

    /// A turn. No pause ends after `deadline_ns`; 0: none at all.
    void begin(std::uint64_t deadline_ns) noexcept
    {
        deadline_ns_ = deadline_ns;
        is_in_background_ = deadline_ns != 0;
        pauses_ = true;
        worked_since_ns_ = os::monotonic_ns();
        turns_without_way_ -= turns_without_way_ == 0 ? 0 : 1;
        begun_cpu_ns_ = os::thread_cpu_ns();
        const std::uint64_t left_ns = deadline_ns - std::min(deadline_ns, worked_since_ns_);
        const std::uint64_t pauses_ns = left_ns - std::min(left_ns, expected_cpu_ns_ + expected_cpu_ns_ / 4);
        sleep_percent_ = std::min(pauses_ns * 100 / std::max<std::uint64_t>(expected_cpu_ns_, 1), sleep_percent_max);
    }
    /// The turn is done.
    void end() noexcept { expected_cpu_ns_ = os::thread_cpu_ns() - begun_cpu_ns_; }

    /// Called after each page, outside a stop and without a lock.
    void page_done() noexcept
    {
        if (++pages_ % pages_between_looks == 0) {
            step_done();
        }
    }

    /// A step that took as long as many pages is done.
    void step_done() noexcept
    {
        if (deadline_ns_ != 0 && pauses_) {
            pause();
        } else if (is_in_background_ && turns_without_way_ == 0) {
            let_others_run();
        }
    }

    /// False: until the next call, and at most until the turn ends, work goes on without pauses.
    void allow_pauses(bool allowed) noexcept { pauses_ = allowed; }
    [[nodiscard]] bool allows_pauses() const noexcept { return pauses_; }

    /// After a stop. A thread that was woken may be queued on this CPU, and would wait there until the next tick of the kernel's clock.
    void give_way() noexcept
    {
        constexpr std::uint64_t all_are_awake_ns = 50'000;
        if (is_in_background_ && !hurry_.load(std::memory_order_acquire)) {
            os::futex_wait(wakes_, wakes_.load(std::memory_order_acquire), os::monotonic_ns() + all_are_awake_ns);
        }
    }

private:
    static constexpr unsigned pages_between_looks = 16;
    static constexpr std::uint64_t work_ns = 50'000;
    static constexpr std::uint64_t sleep_percent_max = 300;  ///< of the time that was worked
    static constexpr std::uint64_t kept_the_cpu_ns = 500'000;
    static constexpr unsigned turns_until_tried_again = 16;

    void pause() noexcept
    {
        const std::uint64_t now_ns = os::monotonic_ns();
        const std::uint64_t worked_ns = now_ns - worked_since_ns_;
        if (worked_ns < work_ns) {
            return;
        }
        const std::uint64_t until_ns = now_ns + sleep_percent_ * std::min(worked_ns, 4 * work_ns) / 100;
        const std::uint32_t seen = wakes_.load(std::memory_order_acquire);
        if (until_ns > deadline_ns_ || hurry_.load(std::memory_order_acquire)) {
            deadline_ns_ = 0;
            return;
        }
        os::futex_wait(wakes_, seen, until_ns);
        worked_since_ns_ = os::monotonic_ns();
    }

    void let_others_run() noexcept
    {
        const std::uint64_t now_ns = os::monotonic_ns();
        if (now_ns - worked_since_ns_ < work_ns || hurry_.load(std::memory_order_acquire)) {
            return;
        }
        os::yield_cpu();
        worked_since_ns_ = os::monotonic_ns();
        if (worked_since_ns_ - now_ns > kept_the_cpu_ns) {
            turns_without_way_ = turns_until_tried_again;
        }
    }

    std::atomic<std::uint32_t>& wakes_;
    const std::atomic<bool>& hurry_;
    std::uint64_t deadline_ns_ = 0;
    std::uint64_t worked_since_ns_ = 0;
    std::uint64_t begun_cpu_ns_ = 0;
    std::uint64_t expected_cpu_ns_ = 0;  ///< what the turn before took
    std::uint64_t sleep_percent_ = sleep_percent_max;
    unsigned pages_ = 0;
    unsigned turns_without_way_ = 0;
    bool pauses_ = true;
    bool is_in_background_ = false;
};

}  // namespace stillpoint::pmthreads
