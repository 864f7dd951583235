// How the records of FaseLogs become durable: in groups, or each by its own thread; and what the replayer is told of it.

#include <algorithm>

#include "engines/nvthreads/fase_logs.hpp"
#include "engines/nvthreads/own_statistics.hpp"
#include "logs/log_area_layout.hpp"
#include "os/clock.hpp"

namespace stillpoint::nvthreads {

void FaseLogs::start_direct_commit() noexcept
{
    const std::uint64_t area = parts_.pool->facts().engine_area_first_page;
    direct_.start({medium_, (area + logs::marker_page) * page_bytes, &order_, &clock_, &open_fases_, parts_.spares_markers});
}

Result<void> FaseLogs::start_group_commit(const logs::GroupRecord& group)
{
    const auto log_count = [](void* self) noexcept { return static_cast<FaseLogs*>(self)->log_count(); };
    const auto log = [](void* self, std::uint32_t number) noexcept -> logs::RedoLog& { return static_cast<FaseLogs*>(self)->log(number); };
    const auto failed = [](void* self, const Failure& failure) noexcept { static_cast<FaseLogs*>(self)->fail_for_good(failure); };
    const auto cut = [](void* self) noexcept {
        auto& logs = *static_cast<FaseLogs*>(self);
        return logs.open_fases_.cut(logs.clock_);
    };
    const auto round = [](void* self, std::uint64_t oldest_ns) noexcept { static_cast<FaseLogs*>(self)->note_round(oldest_ns); };
    const std::uint64_t area = parts_.pool->facts().engine_area_first_page;
    logs::GroupCommit::Parts group_parts{
        medium_,           parts_.medium_lock, &space_, &order_, &clock_, (area + logs::group_page) * page_bytes,
        logs::group_magic, log_count,          log,     failed,  this};
    group_parts.cut = cut;
    group_parts.unawaited_ns = parts_.delay_ns;
    group_parts.on_round = round;
    return group_.start(group_parts, group);
}

/// Acknowledge order: no section has waited too long for the round in progress.
bool FaseLogs::is_loss_bounded() const noexcept
{
    const std::uint64_t oldest_ns = group_.round_oldest_ns();
    return oldest_ns == 0 || os::monotonic_ns() - oldest_ns < parts_.loss_max_ns;
}

Result<void> FaseLogs::await(Timestamp timestamp, std::uint64_t deadline_ns) noexcept
{
    return is_direct_ ? await_marker(timestamp, deadline_ns) : group_.wait_until(timestamp, deadline_ns);
}

Result<void> FaseLogs::await_marker(Timestamp timestamp, std::uint64_t deadline_ns) noexcept
{
    constexpr std::uint64_t look_again_ns = 100'000'000;
    while (order_.durable() < timestamp) {
        const std::uint32_t seen = open_fases_.ends();
        const DirectCommit::Outcome outcome = direct_.raise_marker(timestamp);
        if (outcome == DirectCommit::Outcome::lost) {
            fail_for_good(logs::loss_of(*medium_));
        }
        if (has_failed()) {
            return pass_on(failure_);
        }
        const std::uint64_t now_ns = os::monotonic_ns();
        if (outcome == DirectCommit::Outcome::open && now_ns >= deadline_ns) {
            return fail(SP_E_TIMED_OUT, 0, "it is not durable yet: another thread's section has handed a part over and has not ended");
        }
        if (outcome == DirectCommit::Outcome::open) {
            open_fases_.await_end(seen, std::min(deadline_ns, now_ns + look_again_ns));
        }
    }
    return {};
}

/// Records after the cut cannot be durable before another thread ends its FASE.
Result<bool> FaseLogs::try_seal() noexcept
{
    if (has_failed()) {
        return pass_on(failure_);
    }
    if (is_direct_) {
        constexpr Timestamp whatever_is_possible = 0;
        if (direct_.raise_marker(whatever_is_possible) == DirectCommit::Outcome::lost) {
            return pass_on(logs::loss_of(*medium_));
        }
        return true;
    }
    if (auto done = group_.wait(open_fases_.cut(clock_)); !done) {
        return pass_on(done.error());
    }
    return true;
}

/// Records that count without the marker are replayed up to it.
logs::GroupRecord FaseLogs::replayable() noexcept
{
    logs::GroupRecord goal = group_.newest();
    if (is_direct_) {
        static_cast<void>(try_seal());  // A loss is told by the next record.
        goal.marker = order_.durable();
        publish_counts();
    }
    return goal;
}

void FaseLogs::publish_counts() noexcept
{
    std::uint64_t fases = 0;
    std::uint64_t parts = 0;
    const std::uint32_t count = thread_count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
        fases += threads_[i]->fases.load(std::memory_order_relaxed);
        parts += threads_[i]->parts.load(std::memory_order_relaxed);
    }
    const StatisticsScope scope(parts_.statistics_number);
    own_statistic(OwnStatistic::fases).store(fases, std::memory_order_relaxed);
    own_statistic(OwnStatistic::parts_handed_over).store(parts, std::memory_order_relaxed);
}

void FaseLogs::note_round(std::uint64_t oldest_ns) noexcept
{
    publish_counts();
    const StatisticsScope scope(parts_.statistics_number);
    own_statistic(OwnStatistic::group_commits).fetch_add(1, std::memory_order_relaxed);
    if (oldest_ns != 0) {
        const std::uint64_t age_ns = os::monotonic_ns() - oldest_ns;
        auto& longest = own_statistic(OwnStatistic::loss_ns_max);
        if (age_ns > longest.load(std::memory_order_relaxed)) {
            longest.store(age_ns, std::memory_order_relaxed);
        }
    }
}

}  // namespace stillpoint::nvthreads
