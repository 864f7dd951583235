#include "engines/respct/checkpointer.hpp"

#include <algorithm>
#include <mutex>

#include "core/canary.hpp"
#include "core/logged_words.hpp"
#include "engines/respct/own_statistics.hpp"
#include "os/clock.hpp"
#include "os/log.hpp"
#include "pool/commit_record.hpp"
#include "runtime/checkpoint_figures.hpp"

namespace stillpoint::respct {

Result<void> Checkpointer::start()
{
    if (auto done = parts_.writer->start(); !done) {
        return done;
    }
    return turns_.start();
}

bool Checkpointer::finish() noexcept
{
    const bool finished = turns_.finish();
    watch_.at_end();
    parts_.writer->stop();
    return finished;
}

void Checkpointer::detach_after_fork() noexcept
{
    turns_.detach_after_fork();
    parts_.writer->detach_after_fork();
}

CheckpointTurn Checkpointer::take_turn(void* self, const CheckpointTurns::Facts& facts) noexcept
{
    auto& here = *static_cast<Checkpointer*>(self);
    const MediumTurn medium_turn(here.parts_.pool->medium());  // A copier waits for the end of a stop, and no stop for a copier.
    return here.take_checkpoint(facts.last, facts.even_if_empty);
}

bool Checkpointer::nothing_is_written() const noexcept
{
    const std::uint64_t running = parts_.clock->running();
    return !parts_.tables->changed() && parts_.clock->wanted() < running && !CollectedLines::any_in(running);
}

void Checkpointer::end_epoch(void* self) noexcept
{
    auto& here = *static_cast<Checkpointer*>(self);
    here.ended_epoch_ = here.parts_.clock->running();
    const bool wrote = here.parts_.tables->changed() || CollectedLines::any_in(here.ended_epoch_);
    here.watch_.at_capture(wrote, !here.last_ && here.parts_.clock->wanted() < here.ended_epoch_);
    here.ended_ns_ = os::monotonic_ns();
    here.ended_unix_ns_ = os::wall_clock_ns();
    here.parts_.tables->capture();
    if (here.settings_.flush == Flush::in_stop) {
        here.outcome_ = here.make_durable();
    }
    const std::uint64_t next = here.parts_.clock->advance() + 1;
    set_running_epoch(next);
    probe_captured(here.ended_epoch_);
}

CheckpointTurn Checkpointer::take_checkpoint(bool last, bool even_if_empty) noexcept
{
    if (parts_.clock->failed()) {
        return CheckpointTurn::failed;
    }
    if (!last && !even_if_empty && nothing_is_written()) {
        statistics().empty_checkpoints.fetch_add(1, std::memory_order_relaxed);
        return CheckpointTurn::nothing_to_do;
    }
    last_ = last;
    // Restart points may lie far apart: each attempt waits twice as long as the one before. None waits forever, since a thread that
    // is held at its restart point may be what another one waits for.
    const std::uint64_t attempt_ns = attempt_length_ns(settings_.stop_attempt_ns, withdrawn_in_row_);
    StopReport stop{.reached = true};
    if (is_removed(Canary::restart_point_wait)) {
        end_epoch(this);
    } else {
        stop = stop_threads(attempt_ns, &end_epoch, this);
    }
    if (!stop.reached) {
        ++withdrawn_in_row_;
        // A thread that never comes to a restart point must not keep the others from their work.
        turns_.rest_at_least(free_for_each_held * stop.wait_ns);
        note_withdrawn(stop);
        note_long_wait(stop);
        return CheckpointTurn::withdrawn;
    }
    withdrawn_in_row_ = 0;
    record_stop(parts_.clock->running(), stop_length_ns(stop), stop.wait_ns);
    watch_.after_capture();
    const std::uint64_t write_begun_ns = os::monotonic_ns();
    if (settings_.flush == Flush::in_background) {
        outcome_ = make_durable();
    }
    if (!outcome_) {
        give_up_durability(*parts_.clock, outcome_.error());
        return CheckpointTurn::failed;
    }
    note_commit(os::monotonic_ns() - write_begun_ns);
    // Blocks that older states needed may be given out again only now.
    logged::durable_epoch.store(ended_epoch_, std::memory_order_release);
    parts_.clock->set_durable(ended_epoch_);
    return CheckpointTurn::committed;
}

Result<void> Checkpointer::make_durable() noexcept
{
    const std::lock_guard guard(*parts_.medium_lock);
    Pool& pool = *parts_.pool;
    Medium& medium = pool.medium();
    CollectedLines lines(ended_epoch_);
    auto written = parts_.writer->write(pool, lines);
    if (!written) {
        return pass_on(written.error());
    }
    lines_ = *written;
    lines.clear();
    if (auto done = parts_.tables->write(pool, ended_epoch_); !done) {
        return done;
    }
    if (!is_removed(Canary::lines_durable)) {
        if (auto done = medium.sync(); !done) {
            return done;
        }
    }
    CommitRecord record{};
    record.magic = commit_magic;
    record.pool_uuid = pool.facts().uuid;
    record.epoch = ended_epoch_;
    record.generation = pool.facts().generation;
    record.table_digest = parts_.tables->digest();
    record.image_pages = parts_.memory->bytes() / page_bytes;
    record.pages_in_epoch = lines_;
    record.captured_unix_ns = ended_unix_ns_;
    record.flags = last_ ? static_cast<std::uint32_t>(commit_clean) : 0U;
    if (auto done = store_commit_record(pool, record); !done) {
        return done;
    }
    if (!is_removed(Canary::commit_durable)) {
        if (auto done = medium.sync(); !done) {
            return done;
        }
    }
    return medium.check_intact();
}

/// The program may have no restart point where it needs one.
void Checkpointer::note_long_wait(const StopReport& stop) noexcept
{
    constexpr unsigned attempts_before_told = 7;
    if (withdrawn_in_row_ < attempts_before_told || told_of_wait_) {
        return;
    }
    told_of_wait_ = true;
    os::log(os::Severity::warning,
            "no checkpoint is possible: thread {} has passed no restart point in {} attempts; what it does between two of them takes "
            "long, or it waits in a call that may block: put restart points (RP) closer together, or checkpoint_allow and "
            "checkpoint_prevent around that call",
            stop.blocker_thread_id, withdrawn_in_row_);
}

void Checkpointer::note_commit(std::uint64_t write_ns) const noexcept
{
    record_commit(ended_epoch_, ended_ns_, write_ns, parts_.pool->medium());
    own_statistic(OwnStatistic::modified_lines_last).store(lines_, std::memory_order_relaxed);
    own_statistic(OwnStatistic::modified_lines_total).fetch_add(lines_, std::memory_order_relaxed);
}

}  // namespace stillpoint::respct
