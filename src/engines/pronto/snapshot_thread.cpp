#include "engines/pronto/snapshot_thread.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/store_marks.hpp"
#include "os/clock.hpp"
#include "runtime/checkpoint_figures.hpp"
#include "runtime/statistics.hpp"
#include "runtime/stop_turns.hpp"
#include "runtime/sync_objects.hpp"

namespace stillpoint::pronto {

namespace {

/// So long after a snapshot with nothing written since, memory and room that the next one may need go back.
constexpr std::uint64_t idle_after_ns = 1'000'000'000;

/// The log is written between the batches of a snapshot.
constexpr versions::EpochWriter::WriteRules write_rules{.leaves_out_zero_pages = true, .batch_bytes_max = 4 * mib};

}  // namespace

SnapshotThread::SnapshotThread(const Parts& parts, const Settings& settings) noexcept
    : parts_(parts), settings_(settings), writer_(*parts.pool, *parts.table, *parts.locations, *parts.medium_lock, write_rules),
      turns_(settings.interval_ns, &take_turn, this)
{
}

Result<void> SnapshotThread::prepare() { return writer_.reserve(settings_.image_pages_max); }

CheckpointTurn SnapshotThread::take_turn(void* self, const CheckpointTurns::Facts& facts) noexcept
{
    auto& here = *static_cast<SnapshotThread*>(self);
    here.tracers_.look();
    return here.take_snapshot(facts.last, facts.even_if_empty);
}

bool SnapshotThread::nothing_is_written() const noexcept
{
    return parts_.clock->wanted() < parts_.clock->running() && !parts_.pieces->any_written() && !mirrored_.changed();
}

void SnapshotThread::note_idle() noexcept
{
    parts_.staging->note_idle();
    if (const SnapshotHooks& hooks = *parts_.hooks; hooks.idle != nullptr) {
        hooks.idle(hooks.context);
    }
}

void SnapshotThread::prepare_store(void* self, std::byte* address, std::size_t size) noexcept
{
    static_cast<SnapshotThread*>(self)->parts_.pieces->prepare_write(address, size);
}

void SnapshotThread::freeze_in_stop(void* self) noexcept
{
    auto& here = *static_cast<SnapshotThread*>(self);
    if (here.parts_.clock->failed()) {
        // Since the turn began: the image may have what must not become durable.
        here.stop_outcome_ = pass_on(here.parts_.clock->failure());
        return;
    }
    const SnapshotHooks& hooks = *here.parts_.hooks;
    const bool awaited = here.parts_.clock->wanted() >= here.parts_.clock->running();
    here.watch_.at_capture(here.parts_.pieces->any_written() || here.mirrored_.changed(), !here.last_ && !awaited);
    here.announced_.absorb(*here.parts_.table, *here.parts_.locations);
    const SyncObjectsCapture capture(here.parts_.shadow->base(), &prepare_store, &here);
    here.mirrored_.update([&](std::byte* address, std::size_t size) { prepare_store(&here, address, size); });
    if (hooks.capturing != nullptr) {
        hooks.capturing(hooks.context);
    }
    here.stop_outcome_ = here.parts_.pieces->freeze();
    here.captured_image_pages_ = here.parts_.shadow->bytes() / page_bytes;
    here.captured_epoch_ = here.parts_.clock->advance();
    probe_captured(here.captured_epoch_);
    here.captured_ns_ = os::monotonic_ns();
    here.captured_unix_ns_ = os::wall_clock_ns();
}

CheckpointTurn SnapshotThread::take_snapshot(bool last, bool even_if_empty) noexcept
{
    if (parts_.clock->failed()) {
        return CheckpointTurn::failed;
    }
    if (!last && !even_if_empty && nothing_is_written()) {
        statistics().empty_checkpoints.fetch_add(1, std::memory_order_relaxed);
        if (os::monotonic_ns() - captured_ns_ >= idle_after_ns) {
            note_idle();
        }
        return CheckpointTurn::nothing_to_do;
    }
    if (small_pages_ && !last) {
        parts_.pieces->collapse_written();
    }
    last_ = last;
    const StopReport stop = stop_threads_in_turn(settings_.stop_attempt_ns, &freeze_in_stop, this);
    if (!stop.reached) {
        note_withdrawn(stop);
        return CheckpointTurn::withdrawn;
    }
    writing_.store(true, std::memory_order_release);
    record_stop(parts_.clock->running(), stop_length_ns(stop), stop.wait_ns);
    watch_.after_capture();
    const std::uint64_t write_begun_ns = os::monotonic_ns();
    auto outcome = stop_outcome_ ? write_epoch(last) : stop_outcome_;
    if (!outcome) {
        // Handlers wait for staging memory that would never be emptied.
        parts_.pieces->abandon_snapshots();
        give_up_durability(*parts_.clock, outcome.error());
        writing_.store(false, std::memory_order_release);
        return CheckpointTurn::failed;
    }
    note_commit(os::monotonic_ns() - write_begun_ns);
    parts_.staging->end_snapshot();
    if (const SnapshotHooks& hooks = *parts_.hooks; hooks.committed != nullptr) {
        hooks.committed(hooks.context, captured_epoch_);
    }
    writing_.store(false, std::memory_order_release);
    parts_.clock->set_durable(captured_epoch_);
    return CheckpointTurn::committed;
}

Result<void> SnapshotThread::write_epoch(bool clean) noexcept
{
    writer_.begin(captured_epoch_);
    pages_written_ = 0;
    if (auto written = write_frozen(); !written) {
        return written;
    }
    return writer_.commit({captured_epoch_, captured_image_pages_, captured_unix_ns_, clean});
}

/// Copies first: a piece that has its copy costs the program no fault.
Result<void> SnapshotThread::write_frozen() noexcept
{
    std::uint64_t written = 0;
    while (written < parts_.pieces->frozen_count()) {
        const std::uint32_t seen = parts_.pieces->progress();
        const auto copied = parts_.pieces->copy_next_frozen();
        if (copied == SnapshotPieces::CopyResult::one) {
            continue;
        }
        const auto filled = parts_.staging->next_filled();
        if (filled.slot == SnapshotStaging::none) {
            parts_.pieces->wait_for_progress(seen);  // For a handler that makes a copy now.
            continue;
        }
        if (auto done = write_piece(filled); !done) {
            return done;
        }
        ++written;
        // The last piece goes with the table, in commit(): nothing is frozen any more, so its slot is not filled again.
        if (written < parts_.pieces->frozen_count()) {
            if (auto done = writer_.flush_gathered(); !done) {
                return done;
            }
        }
        parts_.staging->give_back(filled.slot);
        parts_.pieces->tell_progress();
    }
    return {};
}

Result<void> SnapshotThread::write_piece(const SnapshotStaging::Filled& filled) noexcept
{
    const std::uint64_t first_page = filled.piece * pages_per_piece;
    const std::byte* const bytes = parts_.staging->bytes_of(filled.slot);
    const std::uint64_t pages = parts_.pieces->captured_bytes_of(filled.piece) / page_bytes;
    for (std::uint64_t page = 0; page < pages; ++page) {
        auto written = writer_.write_page(pages_written_, first_page + page, bytes + page * page_bytes, false);
        if (!written) {
            return pass_on(written.error());
        }
        pages_written_ += *written ? 1U : 0U;
    }
    return {};
}

void SnapshotThread::note_commit(std::uint64_t write_ns) const noexcept
{
    record_commit(captured_epoch_, captured_ns_, write_ns, parts_.pool->medium());
    Statistics& here = statistics();
    here.dirty_pages_last.store(pages_written_, std::memory_order_relaxed);
    here.dirty_pages_total.fetch_add(pages_written_, std::memory_order_relaxed);
    here.staging_bytes_max.store(parts_.staging->used_bytes_peak(), std::memory_order_relaxed);
}

}  // namespace stillpoint::pronto
