#include "runtime/checkpoint_turns.hpp"

#include <algorithm>

#include <sys/prctl.h>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint {

Result<void> CheckpointTurns::start()
{
    statistics_number_ = StatisticsScope::current();
    return thread_.start("sp-checkpoint", &run, this);
}

bool CheckpointTurns::finish() noexcept
{
    if (!thread_.running()) {
        return false;
    }
    finishing_.store(true, std::memory_order_release);
    request();
    thread_.join();
    return finished_clean_;
}

void CheckpointTurns::request() noexcept
{
    requested_.store(true, std::memory_order_release);
    wakes_.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(wakes_);
}

void CheckpointTurns::sleep_until(std::uint64_t deadline_ns) noexcept
{
    while (!requested_.load(std::memory_order_acquire) && os::monotonic_ns() < deadline_ns) {
        const std::uint32_t seen = wakes_.load(std::memory_order_acquire);
        if (requested_.load(std::memory_order_acquire)) {
            break;
        }
        os::futex_wait(wakes_, seen, deadline_ns);
    }
}

/// Pauses of some 10 us end when they should: the kernel adds up to 50 us otherwise.
constexpr unsigned long timer_slack_ns = 1'000;

void CheckpointTurns::run(void* self)
{
    auto& turns = *static_cast<CheckpointTurns*>(self);
    const StatisticsScope own(turns.statistics_number_);
    prctl(PR_SET_TIMERSLACK, timer_slack_ns);
    turns.loop();
}

void CheckpointTurns::loop() noexcept
{
    constexpr std::uint64_t back_off_first_ns = 1'000'000;
    constexpr std::uint64_t last_chance_ns = 2'000'000'000;
    std::uint64_t back_off_ns = back_off_first_ns;
    std::uint64_t next_ns = os::monotonic_ns() + interval_ns_;
    std::uint64_t give_up_ns = UINT64_MAX;
    bool retrying = false;
    while (true) {
        sleep_until(next_ns);
        const bool last = finishing_.load(std::memory_order_acquire);
        const bool requested = requested_.exchange(false, std::memory_order_acq_rel) || retrying;
        if (last && give_up_ns == UINT64_MAX) {
            give_up_ns = os::monotonic_ns() + last_chance_ns;
        }
        const std::uint64_t begun_ns = os::monotonic_ns();
        const CheckpointTurn turn = take_(engine_, {last, requested, begun_ns});
        retrying = turn == CheckpointTurn::withdrawn && requested;
        if (turn == CheckpointTurn::failed) {
            return;
        }
        if (last && (turn == CheckpointTurn::committed || os::monotonic_ns() > give_up_ns)) {
            finished_clean_ = turn == CheckpointTurn::committed;
            return;
        }
        if (turn == CheckpointTurn::withdrawn) {
            next_ns = os::monotonic_ns() + (last ? back_off_ns : std::max(back_off_ns, rest_ns_));
            back_off_ns = std::min(2 * back_off_ns, interval_ns_);
            continue;
        }
        back_off_ns = back_off_first_ns;
        const std::uint64_t now_ns = os::monotonic_ns();
        next_ns = begun_ns + interval_ns_;
        if (next_ns < now_ns) {
            statistics().stretched_intervals.fetch_add(1, std::memory_order_relaxed);
            next_ns = now_ns;
        }
    }
}

void note_withdrawn(const StopReport& stop) noexcept
{
    Statistics& here = statistics();
    here.withdrawn_attempts.fetch_add(1, std::memory_order_relaxed);
    here.blocker_thread_id.store(static_cast<std::uint64_t>(stop.blocker_thread_id), std::memory_order_relaxed);
    here.blocker_lock.store(reinterpret_cast<std::uintptr_t>(stop.blocker_lock), std::memory_order_relaxed);
}

void give_up_durability(EpochClock& clock, const Failure& failure) noexcept
{
    statistics().last_error.store(static_cast<std::uint64_t>(failure.code), std::memory_order_relaxed);
    os::log(os::Severity::error,
            "{}; the pool stays at epoch {} and nothing later will be durable: end the program, fix "
            "the cause and start it again",
            failure.text(), clock.durable());
    clock.fail_for_good(failure);
}

}  // namespace stillpoint
