#include "logs/replay_rounds.hpp"

#include <algorithm>
#include <cstring>
#include <unistd.h>
#include <mutex>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "logs/durable_marker.hpp"
#include "logs/linked_range.hpp"
#include "os/clock.hpp"
#include "runtime/checkpoint_figures.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint::logs {

namespace {

/// Logs are written between the batches of a round.
constexpr versions::EpochWriter::WriteRules write_rules{.leaves_out_zero_pages = false, .batch_bytes_max = 4 * mib};
/// Byte-addressable media: how much log a round has for each byte of pages that the one before has written, and at least. Logs that take
/// turns of few chunks need little memory, which first has to be found and cleared; pages are written a quarter as much as logs.
constexpr std::uint64_t log_bytes_for_page_byte = 4;
constexpr std::uint64_t log_bytes_of_round_min = 8 * mib;
/// Records that one round takes at most: 4 GiB of address space, and memory for what is used.
constexpr std::uint64_t records_max = std::uint64_t{1} << 28;

const std::byte* staged_bytes_of(const std::byte* staging, std::uint32_t slot) { return staging + std::uint64_t{slot} * page_bytes; }

}  // namespace

ReplayRounds::ReplayRounds(const Parts& parts, const Settings& settings) noexcept
    : parts_(parts), settings_(settings), writer_(*parts.pool, *parts.table, *parts.locations, *parts.medium_lock, write_rules),
      turns_(settings.interval_ns, &take_turn, this), nodes_(os::NumaNodes::read())
{
}

Result<void> ReplayRounds::prepare()
{
    const std::uint64_t pages = settings_.image_pages_max;
    if (auto done = writer_.reserve(pages); !done) {
        return done;
    }
    if (auto done = round_size_.reserve(pages); !done) {
        return done;
    }
    if (auto done = walked_.reserve(records_max, "the records of a replay"); !done) {
        return done;
    }
    if (auto done = ordered_.reserve(records_max, "the records of a replay"); !done) {
        return done;
    }
    if (auto done = heads_.reserve(ReplayedLogs::logs_max, "the logs of a replay"); !done) {
        return done;
    }
    if (auto done = staging_.reserve(pages * page_bytes, "the pages of a replay"); !done) {
        return done;
    }
    if (auto done = staged_at_.reserve(pages, "the pages of a replay"); !done) {
        return done;
    }
    if (auto done = sorted_pages_.reserve(3 * pages, "the pages of a replay"); !done) {
        return done;
    }
    if (auto done = point_pages_.reserve(page_bytes, "the replay point"); !done) {
        return done;
    }
    return replayer_.start(pages, {.replayers = settings_.replayers}, nodes_);
}

Result<void> ReplayRounds::start()
{
    constexpr std::uint64_t nothing_written = 0;
    plan_next_round(nothing_written);
    return turns_.start();
}

void ReplayRounds::detach_after_fork() noexcept
{
    turns_.detach_after_fork();
    replayer_.detach_after_fork();
}

LogBytes ReplayRounds::log_bytes() const noexcept
{
    const auto bytes = parts_.logs->space().bytes();
    return {bytes.data(), static_cast<std::uint32_t>(bytes.size())};
}

// ---- Recovery -----------------------------------------------------------------------------------

Result<void> ReplayRounds::replay_into_image(const LogIndex& index)
{
    replayed_.store(point_.replayed, std::memory_order_release);
    head_count_ = 0;
    for (const ScannedLog& log : index.logs) {
        heads_[head_count_++] = LogHead(log.records);
    }
    ordered_.clear();
    const auto ordered = ordered_.resize(index.live_records);
    static_cast<void>(order_by_timestamp({heads_.data(), head_count_}, ordered));
    const auto page = [](void* self, std::uint64_t image_page) -> std::byte* {
        const Shadow& shadow = *static_cast<ReplayRounds*>(self)->parts_.shadow;
        return image_page < shadow.bytes() / page_bytes ? shadow.page(image_page) : nullptr;
    };
    has_replayed_ = !ordered.empty();
    if (has_replayed_ && !replayer_.replay(log_bytes(), ordered, {page, this})) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: a log record writes after the end of the image; restore the pool from a copy",
                    parts_.pool->medium().path());
    }
    return {};
}

Result<void> ReplayRounds::make_recovered_durable(Timestamp newest, std::uint64_t live_transactions)
{
    const auto bytes_of = [](ReplayRounds& self, std::uint32_t image_page) -> const std::byte* {
        return self.parts_.shadow->page(image_page);
    };
    // The image may have grown before the engine ran.
    announced_.absorb(*parts_.table, *parts_.locations);
    ReplayPoint point = point_;
    point.replayed = newest;
    point.transactions += live_transactions;
    const auto early = is_removed(Canary::early_pages) ? std::span<const std::uint32_t>{} : parts_.logs->early_pages();
    const auto replayed = has_replayed_ ? replayer_.pages() : std::span<const std::uint32_t>{};
    std::copy(early.begin(), early.end(), std::copy(replayed.begin(), replayed.end(), sorted_pages_.data()));
    auto* const end = sorted_pages_.data() + replayed.size() + early.size();
    std::sort(sorted_pages_.data(), end);
    const auto pages = static_cast<std::uint64_t>(std::unique(sorted_pages_.data(), end) - sorted_pages_.data());
    return write_epoch({sorted_pages_.data(), pages}, bytes_of, point, false);
}

Result<void> ReplayRounds::write_marker(Timestamp newest, std::uint64_t whose_logs) noexcept
{
    const std::uint64_t words[] = {encode_marker(newest), marker_magic, whose_logs};
    std::memset(point_pages_.data(), 0, page_bytes);
    std::memcpy(point_pages_.data(), words, sizeof words);
    const BlockWrite page{(parts_.pool->facts().engine_area_first_page + marker_page) * page_bytes, point_pages_.data(), page_bytes};
    const std::lock_guard guard(*parts_.medium_lock);
    return parts_.pool->medium().write({&page, 1});
}

// ---- A round ------------------------------------------------------------------------------------

CheckpointTurn ReplayRounds::take_turn(void* self, const CheckpointTurns::Facts& facts) noexcept
{
    return static_cast<ReplayRounds*>(self)->take_round(facts.last, facts.even_if_empty);
}

CheckpointTurn ReplayRounds::take_round(bool last, bool even_if_empty) noexcept
{
    if (parts_.clock->failed()) {
        return CheckpointTurn::failed;
    }
    announced_.absorb(*parts_.table, *parts_.locations);
    const bool is_round_wanted = is_round_wanted_.exchange(false, std::memory_order_acq_rel);
    const bool is_epoch_wanted = last || parts_.clock->wanted() >= parts_.clock->running();
    if (parts_.logs->before_turn() && even_if_empty && !is_round_wanted && !is_epoch_wanted &&
        os::monotonic_ns() - newest_epoch_ns_ < settings_.interval_ns) {
        return CheckpointTurn::nothing_to_do;
    }
    const bool awaited = is_epoch_wanted || even_if_empty;
    Result<void> outcome = awaited ? seal(last) : Result<void>{};
    const GroupRecord goal = parts_.logs->replayable();
    if (outcome && !awaited && goal.marker <= point_.replayed) {
        statistics().empty_checkpoints.fetch_add(1, std::memory_order_relaxed);
        rest();
        return CheckpointTurn::nothing_to_do;
    }
    room_is_kept_ = true;
    if (outcome) {
        outcome = replay_up_to(goal, last);
    }
    if (!outcome) {
        parts_.logs->fail_for_good(outcome.error());
        return CheckpointTurn::failed;
    }
    return CheckpointTurn::committed;
}

/// Puts every record up to `limit` that is not replayed in order, along links. False: there are none, or one is missing.
bool ReplayRounds::follow(Timestamp limit) noexcept
{
    CommitLinks* const links = parts_.logs->links();
    if (links == nullptr) {
        return false;
    }
    links->await_links(limit);
    LinkedRecords range{*links->direction(), {}, {}, 0};
    const std::uint32_t logs = parts_.logs->log_count();
    for (std::uint32_t i = 0; i < logs; ++i) {
        if (RedoLog& log = parts_.logs->log(i); log.has_chunks()) {
            add_records(log, parts_.logs->space(), point_.replayed, limit, range);
        }
    }
    const std::span<RecordRef> ordered = ordered_.resize(range.count);
    if (ordered.size() == range.count &&
        (ordered.empty() || follow_links(log_bytes(), range.direction, range.oldest, range.newest, ordered))) {
        parts_.logs->note_linked(range.count);
        return true;
    }
    parts_.logs->note_missing_link();
    return false;
}

/// Makes durable what has happened so far, for this round to replay. With a full log some rounds make room first; if threads use that up
/// too, what they wait for is this round.
Result<void> ReplayRounds::seal(bool last) noexcept
{
    const unsigned attempts = last ? 100 : 3;
    for (unsigned i = 0; i < attempts; ++i) {
        const auto sealed = parts_.logs->try_seal();
        if (!sealed) {
            return pass_on(sealed.error());
        }
        if (*sealed) {
            return {};
        }
        if (auto done = replay_up_to(parts_.logs->replayable(), false); !done) {
            return done;
        }
    }
    return {};
}

/// Every record up to `limit` that is not replayed, log after log.
bool ReplayRounds::collect(Timestamp limit) noexcept
{
    walked_.clear();
    head_count_ = 0;
    const LogBytes bytes = log_bytes();
    bool complete = true;
    const std::uint32_t logs = parts_.logs->log_count();
    for (std::uint32_t i = 0; i < logs; ++i) {
        RedoLog& log = parts_.logs->log(i);
        if (!log.has_chunks()) {
            continue;
        }
        const std::uint64_t first = walked_.count();
        log.visit_chunks([&](ChunkIndex chunk, std::uint32_t used) noexcept {
            if (parts_.logs->space().state(chunk).newest.load(std::memory_order_acquire) <= point_.replayed) {
                return;
            }
            LogPiece piece{chunk, sizeof(ChunkHeader), used};
            complete &= walk_piece(bytes, piece, limit, walked_);
        });
        auto records = walked_.records().subspan(first);
        const auto is_done = [&](const RecordRef& record) noexcept { return record.timestamp <= point_.replayed; };
        records = records.subspan(static_cast<std::size_t>(std::find_if_not(records.begin(), records.end(), is_done) - records.begin()));
        heads_[head_count_++] = LogHead(records);
    }
    return complete;
}

void ReplayRounds::put_in_order() noexcept
{
    std::uint64_t records = 0;
    for (std::uint32_t i = 0; i < head_count_; ++i) {
        records += heads_[i].left();
    }
    static_cast<void>(order_by_timestamp({heads_.data(), head_count_}, ordered_.resize(records)));
}

Result<void> ReplayRounds::replay_up_to(const GroupRecord& goal, bool clean) noexcept
{
    if (!follow(goal.marker)) {
        if (!collect(goal.marker)) {
            return fail(SP_E_NO_MEMORY, 0, "the logs have more than {} records", records_max);
        }
        put_in_order();
    }
    std::span<const RecordRef> left = ordered_.records();
    const auto bytes_of = [](ReplayRounds& self, std::uint32_t image_page) {
        return staged_bytes_of(self.staging_.data(), self.staged_at_[image_page]);
    };
    do {
        const auto taken = replay_some(left);
        if (!taken) {
            return pass_on(taken.error());
        }
        ReplayPoint point = point_;
        const auto count_of_parts = [](const RecordRef& record, const RecordRef& next) { return record.timestamp != next.timestamp; };
        const auto done = left.first(*taken);
        for (std::size_t i = 0; i < done.size(); ++i) {
            point.transactions += i + 1 == done.size() || count_of_parts(done[i], done[i + 1]) ? 1U : 0U;
        }
        newest_replayed_ = done.empty() ? newest_replayed_ : done.back().timestamp;
        left = left.subspan(*taken);
        point.replayed = left.empty() ? goal.marker : done.back().timestamp;
        if (left.empty() && parts_.logs->groups_count_records()) {
            point.transactions = goal.transactions;
        }
        const auto pages = *taken != 0 ? replayer_.pages() : std::span<const std::uint32_t>{};
        std::copy(pages.begin(), pages.end(), sorted_pages_.data());
        std::sort(sorted_pages_.data(), sorted_pages_.data() + pages.size());
        if (auto written = write_epoch({sorted_pages_.data(), pages.size()}, bytes_of, point, clean && left.empty()); !written) {
            return written;
        }
    } while (!left.empty());
    return {};
}

Result<std::uint64_t> ReplayRounds::replay_some(std::span<const RecordRef> ordered) noexcept
{
    if (ordered.empty()) {
        return 0;
    }
    const LogBytes bytes = log_bytes();
    std::uint64_t records = round_size_.count(bytes, ordered, settings_.staging_bytes / page_bytes).records;
    if (records == 0) {  // One transaction is larger than that.
        const auto is_first = [&](const RecordRef& record) noexcept { return record.timestamp == ordered.front().timestamp; };
        records = static_cast<std::uint64_t>(std::find_if_not(ordered.begin(), ordered.end(), is_first) - ordered.begin());
    }
    staged_pages_.store(0, std::memory_order_relaxed);
    if (!replayer_.replay(bytes, ordered.first(records), {&staged_page, this})) {
        return failure_ ? tl::unexpected<Failure>(*failure_)
                        : fail(SP_E_POOL_CORRUPT, 0, "{}: a log record writes after the end of the image; restore the pool from a copy",
                               parts_.pool->medium().path());
    }
    return records;
}

/// A copy of the page as its newest durable one is.
std::byte* ReplayRounds::staged_page(void* self, std::uint64_t image_page)
{
    auto& here = *static_cast<ReplayRounds*>(self);
    const std::uint64_t slot = here.staged_pages_.fetch_add(1, std::memory_order_relaxed);
    std::byte* const bytes = here.staging_.data() + slot * page_bytes;
    here.staged_at_[image_page] = static_cast<std::uint32_t>(slot);
    if (auto loaded = here.load_copy(image_page, bytes); !loaded) {
        if (!here.has_failed_.exchange(true, std::memory_order_relaxed)) {  // The first one is told.
            here.failure_ = std::move(loaded.error());
        }
        return nullptr;
    }
    return bytes;
}

Result<void> ReplayRounds::load_copy(std::uint64_t image_page, std::byte* bytes) noexcept
{
    const versions::VersionSlot& slot = parts_.table->consistent(image_page);
    if (slot.epoch == 0) {
        std::memset(bytes, 0, page_bytes);
        return {};
    }
    const Medium& medium = parts_.pool->medium();
    const std::uint64_t offset = std::uint64_t{slot.location} * page_bytes;
    if (medium.byte_addressable()) {
        std::memcpy(bytes, medium.mapping() + offset, page_bytes);
    } else if (auto read = medium.read(offset, {bytes, page_bytes}); !read) {
        return read;
    }
    const std::uint64_t hash = versions::content_hash(bytes, parts_.table->hash_seed());
    if (versions::page_checksum(hash, image_page, slot.epoch) == slot.checksum) {
        return {};
    }
    return fail(SP_E_POOL_CORRUPT, 0, "{}: the copy of image page {} is damaged; restore the pool from a copy", medium.path(), image_page);
}

Result<void> ReplayRounds::write_epoch(std::span<const std::uint32_t> pages, const std::byte* (*bytes_of)(ReplayRounds&, std::uint32_t),
                                       const ReplayPoint& point, bool clean) noexcept
{
    const std::uint64_t begun_ns = os::monotonic_ns();
    const std::uint64_t captured_unix_ns = os::wall_clock_ns();
    const std::uint64_t epoch = parts_.clock->advance();
    probe_captured(epoch);
    if (is_removed(Canary::kept_chunks)) {
        give_chunks_back(point.replayed);
        usleep(3000);  // Transactions take the chunks, on a busy machine too.
    }
    writer_.begin(epoch);
    for (std::uint64_t i = 0; i < pages.size(); ++i) {
        const std::uint32_t image_page = pages[i];
        if (auto written = writer_.write_page(i, image_page, bytes_of(*this, image_page), true); !written) {
            return pass_on(written.error());
        }
    }
    ReplayPoint next = point;
    next.epoch = epoch;
    if (is_removed(Canary::replay_point)) {
        next.replayed = UINT64_MAX >> 5;
    }
    if (auto done = is_removed(Canary::replay_point_order) ? Result<void>() : write_replay_point(next); !done) {
        return done;
    }
    if (auto done = writer_.commit({epoch, parts_.shadow->bytes() / page_bytes, captured_unix_ns, clean}); !done) {
        return done;
    }
    if (is_removed(Canary::replay_point_order)) {
        static_cast<void>(write_replay_point(next));
    }
    point_ = next;
    newest_epoch_ns_ = begun_ns;
    replayed_.store(next.replayed, std::memory_order_release);
    give_chunks_back(next.replayed);
    plan_next_round(pages.size() * page_bytes);
    record_commit(epoch, begun_ns, os::monotonic_ns() - begun_ns, parts_.pool->medium());
    Statistics& here = statistics();
    here.dirty_pages_last.store(pages.size(), std::memory_order_relaxed);
    here.dirty_pages_total.fetch_add(pages.size(), std::memory_order_relaxed);
    parts_.clock->set_durable(epoch);
    return {};
}

/// In both copies of the page, where the point in force stays as it is.
Result<void> ReplayRounds::write_replay_point(const ReplayPoint& point) noexcept
{
    const Pool& pool = *parts_.pool;
    const auto place = [&](const ReplayPoint& which) noexcept { return point_pages_.data() + which.epoch % 2 * replay_point_stride; };
    const auto put = [&](ReplayPoint which) noexcept {
        which.magic = replay_point_magic;
        which.checksum = checksum64(&which.epoch, sizeof which - offsetof(ReplayPoint, epoch), replay_point_magic);
        std::memcpy(place(which), &which, sizeof which);
    };
    std::memset(point_pages_.data(), 0, page_bytes);
    if (point_.epoch != 0 && !is_removed(Canary::replay_point_in_force)) {
        put(point_);
    }
    put(point);
    const std::uint64_t first = (pool.facts().engine_area_first_page + replay_points_page) * page_bytes;
    const BlockWrite copies[] = {{first, point_pages_.data(), page_bytes}, {first + page_bytes, point_pages_.data(), page_bytes}};
    const std::lock_guard guard(*parts_.medium_lock);
    return parts_.pool->medium().write({copies, is_removed(Canary::replay_point_copy) ? 1U : 2U});
}

/// On block media a round waits for the disk: there the logs are used as far as they go.
void ReplayRounds::plan_next_round(std::uint64_t written_bytes) noexcept
{
    if (parts_.pool->medium().byte_addressable()) {
        parts_.logs->space().replay_after(std::max(log_bytes_of_round_min, log_bytes_for_page_byte * written_bytes));
    }
}

/// An interval in which nothing was written; some of them make a program that is idle.
void ReplayRounds::rest() noexcept
{
    constexpr std::uint64_t idle_ns = 1'000'000'000;
    if (room_is_kept_ && os::monotonic_ns() - newest_epoch_ns_ >= idle_ns) {
        parts_.logs->space().note_idle();
        room_is_kept_ = false;
    }
}

void ReplayRounds::give_chunks_back(Timestamp replayed) noexcept
{
    ChunkSpace& space = parts_.logs->space();
    // Idle threads keep their last chunk only while there are plenty.
    const bool all = space.free_chunks() < space.chunk_count() / 4;
    if (parts_.logs->links() != nullptr) {
        // The next transaction may yet store its link in the newest record, or look for its timestamp.
        replayed = newest_replayed_ == 0 ? 0 : newest_replayed_ - 1;
    }
    const std::uint32_t logs = parts_.logs->log_count();
    for (std::uint32_t i = 0; i < logs; ++i) {
        parts_.logs->log(i).release_up_to(replayed, all);
    }
    space.wake_waiters();
    space.give_room_back();
}

}  // namespace stillpoint::logs
