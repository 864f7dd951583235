#include "runtime/quiescence.hpp"

#include <algorithm>

#include "core/sync.hpp"
#include "os/clock.hpp"
#include "os/futex_calls.hpp"
#include "os/probes.hpp"
#include "os/thread_calls.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"

namespace stillpoint {

namespace {

/// A FASE lasts microseconds as a rule: giving the CPU away once is cheaper than sleeping and being
/// woken. Spinning would displace the very thread that is waited for; and on a busy machine each
/// yield may give milliseconds to an unrelated process, whereas a sleeper is woken at once.
constexpr unsigned yields_before_sleep = 1;

void shut_gate() noexcept
{
    const auto bits = fase::gate.bits.fetch_or(fase::gate_shut, std::memory_order_relaxed);
    if ((bits & fase::fences_needed) != 0) {
        sync::fence(std::memory_order_seq_cst);
    } else {
        os::membarrier();
    }
}

void open_gate() noexcept
{
    // A thread that enters comes after what the stop has read.
    fase::gate.bits.fetch_and(~static_cast<std::uint32_t>(fase::gate_shut), std::memory_order_release);
    os::futex_wake(fase::gate.bits);
}

/// Advances `walk` over threads that are outside, to the first one inside. A thread seen outside after
/// the gate was shut cannot get inside while it stays shut, so no thread is examined again.
const ThreadRecord* next_inside(ThreadWalk& walk) noexcept
{
    while (const ThreadRecord* record = walk.current()) {
        if (record->depth.load(std::memory_order_acquire) != 0) {
            return record;
        }
        walk.advance();
    }
    return nullptr;
}

/// Waits until no thread is inside or the deadline passes; returns a thread that is inside then.
const ThreadRecord* wait_until_outside(std::uint64_t deadline_ns) noexcept
{
    ThreadWalk walk;
    for (unsigned looks = 0;; ++looks) {
        // Before the look: a departure after it changes the count, and the futex does not sleep.
        const auto departures = fase::departures.count.load(std::memory_order_acquire);
        const ThreadRecord* inside = next_inside(walk);
        if (inside == nullptr || os::monotonic_ns() >= deadline_ns) {
            return inside;
        }
        if (looks < yields_before_sleep) {
            os::yield_cpu();
        } else {
            os::futex_wait(fase::departures.count, departures, deadline_ns);
        }
    }
}

void name_blocker(StopReport& report, const ThreadRecord& record) noexcept
{
    report.blocker_thread_id = record.thread_id.load(std::memory_order_relaxed);
    const auto lock = record.lock.load(std::memory_order_relaxed);
    report.blocker_lock = lock == ThreadRecord::no_lock ? nullptr : reinterpret_cast<const void*>(lock & ~ThreadRecord::released_bit);
}

}  // namespace

StopReport stop_threads(std::uint64_t attempt_ns, void (*stopped)(void*), void* context) noexcept
{
    StopReport report;
    if (inside_fase()) {
        name_blocker(report, *fase::own_record);  // The thread would wait for itself.
        return report;
    }
    const auto begin_ns = os::monotonic_ns();
    const auto deadline_ns = attempt_ns > UINT64_MAX - 1 - begin_ns ? UINT64_MAX - 1 : begin_ns + attempt_ns;
    shut_gate();
    const ThreadRecord* inside = wait_until_outside(deadline_ns);
    const auto quiescent_ns = os::monotonic_ns();
    report.wait_ns = quiescent_ns - begin_ns;
    if (inside != nullptr) {
        name_blocker(report, *inside);
    } else {
        report.reached = true;
        stopped(context);
        report.stopped_ns = os::monotonic_ns() - quiescent_ns;
    }
    report.begun_ns = begin_ns;
    report.opened_ns = os::monotonic_ns();
    STILLPOINT_PROBE3(stopped, report.opened_ns - begin_ns, report.wait_ns, report.reached ? 1 : 0);
    open_gate();
    return report;
}

std::uint64_t stop_length_ns(const StopReport& stop) noexcept
{
    const bool all_run = fase::held.threads.load(std::memory_order_acquire) == 0;
    const std::uint64_t resumed_ns = all_run ? fase::held.resumed_ns.load(std::memory_order_relaxed) : os::monotonic_ns();
    return std::max(stop.opened_ns, resumed_ns) - stop.begun_ns;
}

}  // namespace stillpoint
