#include "logs/group_commit.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "core/racing_copy.hpp"
#include "core/sanitizers.hpp"
#include "os/clock.hpp"

namespace stillpoint::logs {

namespace {

/// Threads that a round woke come back with their next transactions: a round that begins with the first of them leaves the others to
/// wait for the one after. So a round is held back for as many as were in the last one, at most half its time, and this.
constexpr std::uint64_t held_back_max_ns = 1'000'000;

}  // namespace

std::uint64_t group_checksum(const GroupRecord& record, std::uint64_t seed) noexcept
{
    return checksum64(&record.number, sizeof record - offsetof(GroupRecord, number), seed);
}

Result<void> GroupCommit::start(const Parts& parts, const GroupRecord& last)
{
    parts_ = parts;
    newest_ = last;
    if (auto done = staging_.reserve(staging_pages * page_bytes, "log pages that are being written"); !done) {
        return done;
    }
    if (auto done = writes_.reserve(staging_pages, "log pages that are being written"); !done) {
        return done;
    }
    return thread_.start("sp-log", &run, this);
}

void GroupCommit::stop() noexcept
{
    if (!thread_.running()) {
        return;
    }
    stopping_.store(true, std::memory_order_release);
    wakes_.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(wakes_);
    thread_.join();
}

void GroupCommit::fail_for_good(const Failure& failure) noexcept
{
    {
        const std::lock_guard guard(failure_lock_);
        if (has_failed_.load(std::memory_order_relaxed)) {
            return;
        }
        failure_ = failure;
        has_failed_.store(true, std::memory_order_release);
    }
    rounds_.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(rounds_);
}

GroupRecord GroupCommit::newest() noexcept
{
    const std::lock_guard guard(record_lock_);
    return newest_;
}

Result<void> GroupCommit::wait(Timestamp timestamp) noexcept { return wait_until(timestamp, UINT64_MAX); }

void GroupCommit::begin_unawaited() noexcept
{
    std::uint64_t none = 0;
    if (unawaited_since_ns_.compare_exchange_strong(none, os::monotonic_ns(), std::memory_order_seq_cst)) {
        wakes_.fetch_add(1, std::memory_order_acq_rel);
        os::futex_wake(wakes_, 1);
    }
}

Result<void> GroupCommit::wait_until(Timestamp timestamp, std::uint64_t deadline_ns) noexcept
{
    if (parts_.order->durable() >= timestamp) {
        return {};
    }
    // Counted before the wait: a round that begins later sees it.
    if (pending_.fetch_add(1, std::memory_order_seq_cst) + 1 >= awaited_.load(std::memory_order_seq_cst)) {
        wakes_.fetch_add(1, std::memory_order_acq_rel);
        os::futex_wake(wakes_, 1);
    }
    while (true) {
        const std::uint32_t seen = rounds_.load(std::memory_order_acquire);
        if (parts_.order->durable() >= timestamp) {
            return {};
        }
        if (has_failed_.load(std::memory_order_acquire)) {
            return pass_on(failure_);
        }
        if (deadline_ns != UINT64_MAX && os::monotonic_ns() >= deadline_ns) {
            return fail(SP_E_TIMED_OUT, 0, "it is not durable yet: the log is being written");
        }
        os::futex_wait(rounds_, seen, deadline_ns);
    }
}

void GroupCommit::run(void* self) { static_cast<GroupCommit*>(self)->loop(); }

void GroupCommit::loop() noexcept
{
    while (await_work()) {
        do_round();
    }
}

/// False: the end.
bool GroupCommit::await_work() noexcept
{
    std::uint64_t deadline_ns = UINT64_MAX;
    while (true) {
        const std::uint32_t seen = wakes_.load(std::memory_order_acquire);
        const std::uint32_t pending = pending_.load(std::memory_order_seq_cst);
        const bool stopping = stopping_.load(std::memory_order_acquire);
        const std::uint64_t unawaited_since_ns = unawaited_since_ns_.load(std::memory_order_seq_cst);
        if (stopping && pending == 0 && unawaited_since_ns == 0) {
            return false;
        }
        const std::uint64_t unawaited_deadline_ns = unawaited_since_ns == 0 ? UINT64_MAX : unawaited_since_ns + parts_.unawaited_ns;
        if (unawaited_since_ns != 0 && (stopping || os::monotonic_ns() >= unawaited_deadline_ns)) {
            return true;
        }
        if (pending != 0 && (pending >= pending_last_ || stopping || os::monotonic_ns() >= deadline_ns)) {
            return true;
        }
        awaited_.store(pending == 0 ? 1 : pending_last_, std::memory_order_seq_cst);
        if (pending_.load(std::memory_order_seq_cst) != pending) {
            continue;
        }
        if (pending != 0 && deadline_ns == UINT64_MAX) {
            deadline_ns = os::monotonic_ns() + std::min(round_ns_ / 2, held_back_max_ns);
        }
        os::futex_wait(wakes_, seen, std::min(deadline_ns, unawaited_deadline_ns));
    }
}

void GroupCommit::do_round() noexcept
{
    const std::uint64_t begun_ns = os::monotonic_ns();
    pending_last_ = pending_.exchange(0, std::memory_order_seq_cst);
    const std::uint64_t oldest_ns = unawaited_since_ns_.exchange(0, std::memory_order_seq_cst);
    round_oldest_ns_.store(oldest_ns, std::memory_order_release);
    Result<void> outcome = has_failed_.load(std::memory_order_acquire) ? pass_on(failure_) : Result<void>{};
    GroupRecord record = newest();
    record.magic = group_magic;
    const Timestamp now = parts_.clock->now();
    const Timestamp durable = record.marker;
    record.marker = parts_.cut != nullptr ? parts_.cut(parts_.context) : now;
    const bool is_cut = record.marker < now;
    if (is_cut && record.marker <= durable && outcome) {
        go_on_after_cut(oldest_ns);
        return;
    }
    ++record.number;
    static_cast<void>(parts_.order->await_preceding(nullptr, record.marker));
    const std::uint32_t logs = parts_.log_count(parts_.context);
    for (std::uint32_t i = 0; i < logs && outcome; ++i) {
        outcome = gather(parts_.log(parts_.context, i), record.marker, record.transactions);
    }
    record.checksum = group_checksum(record, parts_.checksum_seed);
    if (outcome) {
        outcome = gather_record(record);
    }
    if (outcome) {
        outcome = write_gathered();
    }
    if (outcome) {
        outcome = sync();
    }
    if (!outcome) {
        const bool first = !has_failed_.load(std::memory_order_acquire);
        fail_for_good(outcome.error());
        if (first) {
            parts_.on_failure(parts_.context, outcome.error());
        }
        return;
    }
    {
        const std::lock_guard guard(record_lock_);
        newest_ = record;
    }
    parts_.order->raise_durable(record.marker);
    round_ns_ = os::monotonic_ns() - begun_ns;
    if (!is_cut) {
        round_oldest_ns_.store(0, std::memory_order_release);
    }
    if (parts_.on_round != nullptr) {
        parts_.on_round(parts_.context, oldest_ns);
    }
    rounds_.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(rounds_);
    if (is_cut) {
        go_on_after_cut(oldest_ns);
    }
}

/// Sections that others depend on are not over yet. Threads may wait for records after the cut, and no other thread asks for a round.
void GroupCommit::go_on_after_cut(std::uint64_t oldest_ns) noexcept
{
    constexpr std::uint64_t pause_ns = 100'000;
    if (stopping_.load(std::memory_order_acquire)) {
        return;
    }
    const std::uint32_t seen = wakes_.load(std::memory_order_acquire);
    os::futex_wait(wakes_, seen, os::monotonic_ns() + pause_ns);
    pending_.fetch_add(1, std::memory_order_seq_cst);
    std::uint64_t none = 0;
    if (oldest_ns != 0 && !unawaited_since_ns_.compare_exchange_strong(none, oldest_ns, std::memory_order_seq_cst)) {
        unawaited_since_ns_.store(oldest_ns, std::memory_order_seq_cst);
    }
}

Result<void> GroupCommit::gather(RedoLog& log, Timestamp marker, std::uint64_t& transactions) noexcept
{
    Result<void> outcome;
    log.visit_chunks([&](ChunkIndex chunk, std::uint32_t used) noexcept {
        ChunkState& state = parts_.space->state(chunk);
        if (!outcome || (state.written == used && state.counted == used)) {
            return;
        }
        const std::byte* const bytes = parts_.space->bytes()[chunk];
        for (std::uint32_t at = std::max<std::uint32_t>(state.counted, sizeof(ChunkHeader)); at < used;) {
            const auto& header = *reinterpret_cast<const RecordHeader*>(bytes + at);
            if (header.timestamp >> 1 > marker) {
                break;
            }
            transactions += part_number(header.part) == 0 ? 1U : 0U;
            at += static_cast<std::uint32_t>(record_bytes_for(header.words));
            state.counted = at;
        }
        if (state.written == used || log.writer() != LogWriter::groups) {
            state.written = used;
            return;
        }
        constexpr std::uint64_t last_page = header_copy_offset / page_bytes * page_bytes;
        const std::uint64_t full_pages = used / page_bytes * page_bytes;
        outcome = gather_pages(chunk, state.written / page_bytes * page_bytes, round_up(used, page_bytes), full_pages);
        if (outcome && state.written == 0 && used <= last_page) {
            outcome = gather_pages(chunk, last_page, chunk_bytes, full_pages);
        }
        state.written = used;
    });
    return outcome;
}

/// A copy of the last page goes to the medium: the page may get its next record while it is written. Any page may get a link meanwhile,
/// which a later transaction stores into one of its records: one aligned word, old or new on the medium, that no checksum covers.
/// ThreadSanitizer, which would report that word where the medium reads it, sees a copy of every page.
Result<void> GroupCommit::gather_pages(ChunkIndex chunk, std::uint64_t at, std::uint64_t end, std::uint64_t settled) noexcept
{
    settled = thread_sanitizer ? 0 : settled;
    while (at < end) {
        if (auto done = make_room_for_write(); !done) {
            return done;
        }
        const std::byte* bytes = parts_.space->mirror(chunk) + at;
        std::uint64_t size = 0;
        if (at < settled) {
            size = std::min(end, settled) - at;
        } else {
            const std::uint64_t pages = std::min((end - at) / page_bytes, staging_pages - staged_pages_);
            size = pages * page_bytes;
            std::byte* const copy = staging_.data() + staged_pages_ * page_bytes;
            racing_copy(copy, bytes, size);
            staged_pages_ += pages;
            bytes = copy;
        }
        writes_[write_count_++] = {parts_.space->file_offset(chunk) + at, bytes, size};
        at += size;
    }
    return {};
}

Result<void> GroupCommit::make_room_for_write() noexcept
{
    return staged_pages_ == staging_pages || write_count_ == staging_pages ? write_gathered() : Result<void>{};
}

Result<void> GroupCommit::gather_record(const GroupRecord& record) noexcept
{
    if (auto done = make_room_for_write(); !done) {
        return done;
    }
    std::byte* const copy = staging_.data() + staged_pages_ * page_bytes;
    std::memset(copy, 0, page_bytes);
    std::memcpy(copy, &record, sizeof record);
    const std::uint64_t page = is_removed(Canary::group_pages) ? 0 : record.number % 2;
    writes_[write_count_++] = {parts_.record_offset + page * page_bytes, copy, page_bytes};
    ++staged_pages_;
    return {};
}

Result<void> GroupCommit::write_gathered() noexcept
{
    const std::lock_guard guard(*parts_.medium_lock);
    auto written = parts_.medium->write({writes_.data(), write_count_});
    write_count_ = 0;
    staged_pages_ = 0;
    return written;
}

Result<void> GroupCommit::sync() noexcept
{
    if (is_removed(Canary::redo_log_sync)) {
        return {};
    }
    const std::lock_guard guard(*parts_.medium_lock);
    if (auto intact = parts_.medium->check_intact(); !intact) {
        return intact;
    }
    return parts_.medium->sync();
}

}  // namespace stillpoint::logs
