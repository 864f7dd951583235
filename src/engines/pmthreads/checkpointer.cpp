#include "engines/pmthreads/checkpointer.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/store_marks.hpp"
#include "engines/pmthreads/advice.hpp"
#include "engines/pmthreads/own_statistics.hpp"
#include "engines/pmthreads/unpaced_passes.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "runtime/checkpoint_figures.hpp"
#include "runtime/quiescence.hpp"
#include "runtime/statistics.hpp"
#include "runtime/sync_objects.hpp"

namespace stillpoint::pmthreads {

Checkpointer::Checkpointer(const Parts& parts, const Settings& settings) noexcept
    : parts_(parts), settings_(settings), writer_(*parts.pool, *parts.table, *parts.locations, *parts.medium_lock,
                                                  {.between_pieces = {&between_pieces, &pacer_}, .await_room = {&await_room, this}}),
      turns_(settings.interval_ns, &take_turn, this)
{
}

Result<void> Checkpointer::prepare()
{
    if (auto done = capture_.reserve(settings_.image_pages_max, settings_.staging_pages, parts_.log, parts_.table); !done) {
        return done;
    }
    if (parts_.log != nullptr && !parts_.tracker->has_lines()) {
        line_sums_.emplace();
        if (auto done = line_sums_->reserve(settings_.image_pages_max, parts_.table->hash_seed()); !done) {
            return done;
        }
    }
    return writer_.reserve(settings_.image_pages_max);
}

Result<void> Checkpointer::start()
{
    if (auto done = team_.start(); !done) {
        return done;
    }
    parts_.pool->medium().honour_holds();
    return turns_.start();
}

bool Checkpointer::finish() noexcept
{
    const bool finished = turns_.finish();
    watch_.at_end();
    if (const std::string text = advice(statistics()); !text.empty()) {
        os::log(os::Severity::note, "slower than it need be: {} (docs/guide/pmthreads.md, \"Slow? Try\")", text);
    }
    team_.stop();
    return finished;
}

void Checkpointer::detach_after_fork() noexcept
{
    turns_.detach_after_fork();
    capture_.detach_after_fork();
    team_.detach_after_fork();
}

Checkpointer::Turn Checkpointer::take_turn(void* self, const CheckpointTurns::Facts& facts) noexcept
{
    auto& here = *static_cast<Checkpointer*>(self);
    if (here.parts_.tracker->needs_fault_handler()) {
        here.tracers_.look();
    }
    const MediumTurn medium_turn(here.parts_.pool->medium());  // A copier reads the file of one epoch, between two turns.
    here.pacer_.begin(facts.last || facts.even_if_empty ? 0 : facts.begun_ns + here.settings_.interval_ns / 4 * 3);
    const Turn turn = here.take_checkpoint(facts.last, facts.even_if_empty);
    here.pacer_.end();
    return turn;
}

void Checkpointer::between_pieces(void* pacer) noexcept { static_cast<Pacer*>(pacer)->step_done(); }

bool Checkpointer::await_room(void* self, const Failure& refusal) noexcept
{
    constexpr std::uint64_t between_tries_ns = 100'000'000;
    auto& here = *static_cast<Checkpointer*>(self);
    if (here.in_stop_ || here.turns_.is_finishing()) {
        return false;
    }
    if (!here.waits_for_room_) {
        here.waits_for_room_ = true;
        os::log(os::Severity::warning, "{}; the program goes on, and nothing after epoch {} is durable until there is room again",
                refusal.text(), here.parts_.clock->durable());
    }
    const std::uint32_t seen = here.turns_.wakes().load(std::memory_order_acquire);
    os::futex_wait(here.turns_.wakes(), seen, os::monotonic_ns() + between_tries_ns);
    return true;
}

Result<void> Checkpointer::write_unstaged() noexcept
{
    for (const std::uint32_t page : capture_.made_whole()) {
        writer_.forget_content(page);
    }
    if (capture_.unstaged().empty()) {
        return {};
    }
    if (!writing_begun_) {
        writer_.begin(parts_.clock->running());
        writing_begun_ = true;
    }
    std::uint64_t copied = 0;
    for (const std::uint32_t index : capture_.unstaged()) {
        const std::uint64_t page = capture_.page(index);
        if (line_sums_) {
            line_sums_->forget(page);
        }
        if (copied == Capture::pages_aside) {
            if (auto flushed = writer_.flush_gathered(); !flushed) {
                return flushed;
            }
            copied = 0;
        }
        // A stop holds sections, not every store: waiters of libc, semaphores and ignored locks go on. What is written has its checksum.
        const std::byte* const copy = capture_.copy_aside(copied++, parts_.shadow->page(page));
        if (auto written = writer_.write_page(index, page, copy, true); !written) {
            return pass_on(written.error());
        }
    }
    return writer_.flush_gathered();
}

/// One pass. Returns Capture::copied_bytes().
Result<std::uint64_t> Checkpointer::copy_ahead() noexcept
{
    take_due_pages();
    auto found = capture_.collect(*parts_.tracker, *parts_.shadow, ScanMode::background, nullptr, &pacer_);
    if (!found) {
        return pass_on(found.error());
    }
    // A page that was found may lie in a segment that came while the walk went on.
    announced_.absorb(*parts_.table, *parts_.locations, parts_.log);
    // While the program runs these bytes may change under the write; then the page is found
    // again and written again.
    if (auto written = write_unstaged(); !written) {
        return pass_on(written.error());
    }
    const std::uint64_t copied = capture_.copied_bytes();
    pre_copied_bytes_ += copied - std::min(copied, capture_.copied_again_bytes());
    return copied;
}

/// With pages in place of lines each pass would cost the program a fault for each page that it writes again.
Result<void> Checkpointer::copy_rest_ahead(std::uint64_t copied_bytes) noexcept
{
    pacer_.allow_pauses(false);
    // Pages without staging memory are written to the medium by each pass.
    for (UnpacedPasses passes(copied_bytes); passes.wants_another() && capture_.unstaged().empty();) {
        const std::uint64_t begun_ns = os::monotonic_ns();
        const auto copied = copy_ahead();
        if (!copied) {
            return pass_on(copied.error());
        }
        passes.pass_done(*copied, os::monotonic_ns() - begun_ns);
    }
    pacer_.allow_pauses(true);
    return {};
}

Result<void> Checkpointer::pre_copy() noexcept
{
    // A program that fills memory writes as much again while a large first pass copies: each pass
    // is shorter than the one before, until the rest is small. Where the rest does not shrink,
    // further passes would copy the same pages for nothing.
    constexpr unsigned passes_max = 5;
    constexpr std::uint64_t small_rest_bytes = 2 * mib;
    std::uint64_t copied_before = UINT64_MAX;
    pre_copied_bytes_ = 0;
    for (unsigned pass = 0; pass < passes_max; ++pass) {
        auto copied = copy_ahead();
        if (!copied) {
            return pass_on(copied.error());
        }
        const bool is_last = *copied <= small_rest_bytes || *copied > copied_before / 2;
        copied_before = *copied;
        if (is_last) {
            break;
        }
    }
    return parts_.tracker->has_lines() ? copy_rest_ahead(copied_before) : Result<void>{};
}

/// Pages that are written whole so that the delta log does not fill up.
void Checkpointer::take_due_pages() noexcept
{
    if (parts_.log != nullptr) {
        parts_.log->begin_epoch(parts_.clock->running());
        parts_.log->visit_due(*parts_.table, [this](std::uint64_t page) { capture_.want_whole(page); });
    }
}

void Checkpointer::prepare_store(void* self, std::byte* address, std::size_t size) noexcept
{
    static_cast<Checkpointer*>(self)->parts_.tracker->prepare_kernel_write(address, size);
}

void Checkpointer::capture_in_stop(void* self) noexcept
{
    auto& here = *static_cast<Checkpointer*>(self);
    here.in_stop_ = true;
    here.announced_.absorb(*here.parts_.table, *here.parts_.locations, here.parts_.log);
    const SyncObjectsCapture capture(here.parts_.shadow->base(), &prepare_store, &here);
    here.mirrored_.update([&](std::byte* address, std::size_t size) { prepare_store(&here, address, size); });
    here.take_due_pages();
    auto found = here.capture_.collect(*here.parts_.tracker, *here.parts_.shadow, ScanMode::stop, &here.team_, nullptr);
    here.parts_.tracker->epoch_captured();
    here.stop_outcome_ = found ? here.write_unstaged() : Result<void>(pass_on(found.error()));
    const bool awaited = here.parts_.clock->wanted() >= here.parts_.clock->running();
    here.watch_.at_capture(here.capture_.found_pages() != 0, !here.last_ && !awaited);
    here.captured_epoch_ = here.parts_.clock->advance();
    probe_captured(here.captured_epoch_);
    here.captured_ns_ = os::monotonic_ns();
    here.captured_unix_ns_ = os::wall_clock_ns();
    here.in_stop_ = false;
}

Checkpointer::Turn Checkpointer::take_checkpoint(bool last, bool even_if_empty) noexcept
{
    if (parts_.clock->failed()) {
        return Turn::failed;
    }
    // A pre-copy finds out whether there is anything to do; where nearly all it copied was
    // written again it is left out for some turns.
    constexpr unsigned turns_until_tried_again = 16;
    if (pre_copy_pays_ || ++turns_without_pre_copy_ >= turns_until_tried_again) {
        turns_without_pre_copy_ = 0;
        pre_copy_pays_ = true;
        if (auto copied = pre_copy(); !copied) {
            give_up_durability(*parts_.clock, copied.error());
            return Turn::failed;
        }
        pre_copied_ = capture_.found_pages();
        const bool awaited = parts_.clock->wanted() >= parts_.clock->running();
        if (pre_copied_ == 0 && !last && !even_if_empty && !awaited && !mirrored_.changed() && !parts_.tracker->has_unarmed_pages() &&
            !capture_.wants_stop()) {
            statistics().empty_checkpoints.fetch_add(1, std::memory_order_relaxed);
            const std::uint64_t now_ns = os::monotonic_ns();
            capture_.rest(now_ns);
            writer_.return_room(now_ns);
            return Turn::nothing_to_do;
        }
    } else {
        pre_copied_ = 0;
    }
    last_ = last;
    const StopReport stop = stop_threads(settings_.stop_attempt_ns, &capture_in_stop, this);
    if (!stop.reached) {
        note_withdrawn(stop);
        return Turn::withdrawn;
    }
    pacer_.give_way();
    watch_.after_capture();
    constexpr std::uint64_t few_bytes = 64 * page_bytes;
    if (pre_copied_ != 0) {  // Otherwise there was none, which tells nothing of the next.
        pre_copy_pays_ = 2 * capture_.copied_again_bytes() <= pre_copied_bytes_ || pre_copied_bytes_ < few_bytes;
    } else if (stop_outcome_ && capture_.found_pages() == 0) {  // The program rests: the next turn finds that out without a stop.
        pre_copy_pays_ = true;
    }
    if (!stop_outcome_) {
        give_up_durability(*parts_.clock, stop_outcome_.error());
        return Turn::failed;
    }
    capture_.end_stop(*parts_.shadow);
    const std::uint64_t write_begun_ns = os::monotonic_ns();
    if (auto written = write_epoch(last); !written) {
        give_up_durability(*parts_.clock, written.error());
        return Turn::failed;
    }
    parts_.tracker->end_epoch();
    note_stop(stop_length_ns(stop), stop.wait_ns);
    note_commit(os::monotonic_ns() - write_begun_ns);
    parts_.clock->set_durable(captured_epoch_);
    if (std::exchange(waits_for_room_, false)) {
        os::log(os::Severity::note, "there was room for a checkpoint again: epoch {} is durable", captured_epoch_);
    }
    const std::uint64_t now_ns = os::monotonic_ns();
    capture_.clear(now_ns);
    writer_.return_room(now_ns);
    writing_begun_ = false;
    return Turn::committed;
}

std::optional<std::uint64_t> Checkpointer::lines_in_place_of(std::uint64_t index) noexcept
{
    constexpr std::uint64_t pages_worth_a_batch = 32;  // Fewer copies are less to write than an index, lines, and the sweep.
    if (!line_sums_) {
        return std::nullopt;
    }
    const std::uint64_t page = capture_.page(index);
    if (capture_.staged_count() < pages_worth_a_batch) {
        line_sums_->forget(page);
        return std::nullopt;
    }
    const auto changed = line_sums_->changed_lines(page, capture_.staged(index));
    return capture_.is_wanted_whole(index) || parts_.table->consistent(page).epoch == 0 ? std::nullopt : changed;
}

Result<bool> Checkpointer::write_staged(std::uint64_t index) noexcept
{
    const auto lines = lines_in_place_of(index);
    if (lines == 0U) {
        return false;
    }
    if (lines && capture_.give_lines(index, *lines)) {
        return true;
    }
    auto written = writer_.write_page(index, capture_.page(index), capture_.staged(index), capture_.certainly_written(index),
                                      capture_.changed_lines(index));
    if (written && *written) {
        capture_.note_written(index);
    }
    return written;
}

Result<void> Checkpointer::write_epoch(bool clean) noexcept
{
    if (!writing_begun_) {
        writer_.begin(captured_epoch_);
    }
    std::uint64_t unchanged = 0;
    for (std::uint64_t i = 0; i < capture_.page_count(); ++i) {
        if (!capture_.is_staged(i)) {
            continue;
        }
        const auto written = write_staged(i);
        if (!written) {
            return pass_on(written.error());
        }
        if (!*written) {
            ++unchanged;
            if (!capture_.certainly_written(i)) {
                parts_.tracker->note_unchanged(capture_.page(i));
            }
        }
        pacer_.page_done();
    }
    own_statistic(OwnStatistic::unchanged_pages_total).fetch_add(unchanged, std::memory_order_relaxed);
    return writer_.commit({captured_epoch_, parts_.shadow->bytes() / page_bytes, captured_unix_ns_, clean, parts_.log, capture_.deltas()});
}

void Checkpointer::note_stop(std::uint64_t stop_ns, std::uint64_t quiesce_ns) noexcept
{
    record_stop(parts_.clock->running(), stop_ns, quiesce_ns);
    const std::uint64_t not_written_again = pre_copied_ - std::min(pre_copied_, capture_.found_again());
    own_statistic(OwnStatistic::precopied_pages_total).fetch_add(not_written_again, std::memory_order_relaxed);
}

void Checkpointer::note_commit(std::uint64_t write_ns) noexcept
{
    record_commit(captured_epoch_, captured_ns_, write_ns, parts_.pool->medium());
    Statistics& here = statistics();
    own_statistic(OwnStatistic::log_lines_total).fetch_add(capture_.deltas().line_count, std::memory_order_relaxed);
    own_statistic(OwnStatistic::log_pages).store(parts_.log != nullptr ? parts_.log->live_pages() : 0, std::memory_order_relaxed);
    here.dirty_pages_last.store(capture_.found_pages(), std::memory_order_relaxed);
    here.dirty_pages_total.fetch_add(capture_.found_pages(), std::memory_order_relaxed);
    here.staging_bytes_max.store(std::max(capture_.staging_bytes_peak(), capture_.staged_bytes()), std::memory_order_relaxed);
}

}  // namespace stillpoint::pmthreads
