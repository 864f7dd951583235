#include "engines/nvthreads/fase_logs.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <sys/mman.h>

#include "core/canary.hpp"
#include "engines/nvthreads/own_statistics.hpp"
#include "logs/log_area_layout.hpp"
#include "os/clock.hpp"
#include "runtime/fase.hpp"
#include "runtime/thread_registry.hpp"

namespace stillpoint::nvthreads {

namespace {

using section_ends::Handover;

std::atomic<std::uint64_t> serials{0};

struct OwnLog {
    std::uint64_t serial = 0;  ///< of the FaseLogs that the thread belongs to; 0: none
    FaseThread* thread = nullptr;
    bool is_ending = false;  ///< thread_ends() was called: what the heap still stores for it is handed over at once
    Timestamp awaited = 0;   ///< acknowledge unlock: what its last section may have seen, when it released its outermost lock
};
/// initial-exec: one instruction, and never a call that may allocate.
constinit thread_local OwnLog own_log [[gnu::tls_model("initial-exec")]];

/// A record is handed over when it is so large, also in the middle of a FASE: half of the smallest log holds several.
constexpr std::uint64_t record_words = std::uint64_t{1} << 16;
/// Ranges are added by such pieces, so that each finds room in a record.
constexpr std::uint64_t piece_bytes = std::uint64_t{64} * kib;
constexpr std::uint64_t piece_words_max = 2 * (piece_bytes / 8 + 2);
/// From here on a record is large: one copy less is worth more than its fence costs.
constexpr std::uint64_t large_record_words = 128;

}  // namespace

FaseLogs::~FaseLogs()
{
    stop();
    const std::uint32_t count = thread_count_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < count; ++i) {
        threads_[i]->~FaseThread();
        munmap(threads_[i], sizeof(FaseThread));
    }
}

Result<void> FaseLogs::prepare(const Parts& parts)
{
    parts_ = parts;
    image_base_ = parts.shadow->base();
    serial_ = serials.fetch_add(1, std::memory_order_relaxed) + 1;
    medium_ = &parts.pool->medium();
    const std::uint64_t image_pages_max = parts.image_bytes_max / page_bytes;
    const std::uint64_t chunks = logs::LogPart::chunks_max(image_pages_max);
    is_direct_ = medium_->byte_addressable() && parts.acknowledge == Acknowledge::unlock;
    has_large_logs_ = medium_->byte_addressable() && !is_direct_;
    if (auto done = space_.reserve(chunks, medium_->byte_addressable() ? medium_->mapping() : nullptr, has_large_logs_, medium_); !done) {
        return done;
    }
    if (auto done = order_.reserve(); !done) {
        return done;
    }
    if (auto done = prepare_shared_logs(); !done) {
        return done;
    }
    if (auto done = threads_.reserve(threads_max, "the logs of threads"); !done) {
        return done;
    }
    if (auto done = free_threads_.reserve(threads_max, "the logs of threads"); !done) {
        return done;
    }
    return early_pages_.reserve(image_pages_max);
}

Result<void> FaseLogs::prepare_shared_logs() noexcept
{
    constexpr std::uint64_t first_number = 0;
    return medium_->byte_addressable() ? Result<void>{}
                                       : shared_logs_.prepare(space_, *medium_, first_number, parts_.pool->facts().generation);
}

Result<void> FaseLogs::start(Timestamp after, const logs::GroupRecord& group)
{
    clock_.start(after, logs::ClockKind::counter);
    order_.set_durable(after);
    if (is_direct_) {
        start_direct_commit();
    } else if (auto done = start_group_commit(group); !done) {
        return done;
    }
    is_running_.store(true, std::memory_order_release);
    return {};
}

void FaseLogs::stop() noexcept
{
    is_running_.store(false, std::memory_order_release);
    group_.stop();
}

void FaseLogs::detach_after_fork() noexcept
{
    is_running_.store(false, std::memory_order_release);
    group_.detach_after_fork();
    early_lock_.reset_after_fork();
    threads_lock_.reset_after_fork();
    open_fases_.reset_after_fork();
    space_.reset_after_fork();
}

// ---- Threads ------------------------------------------------------------------------------------

FaseThread* FaseLogs::own_if_any() const noexcept { return own_log.serial == serial_ ? own_log.thread : nullptr; }

FaseThread* FaseLogs::own() noexcept
{
    FaseThread* const own = own_if_any();
    return own != nullptr ? own : make_own();
}

FaseThread* FaseLogs::make_own() noexcept
{
    // A thread that never takes a lock must tell its end, too.
    static_cast<void>(attach_thread());
    const std::lock_guard guard(threads_lock_);
    std::uint32_t number = thread_count_.load(std::memory_order_relaxed);
    if (free_thread_count_ != 0) {
        number = free_threads_[--free_thread_count_];
    } else {
        void* const memory = number == threads_max
                                 ? MAP_FAILED
                                 : mmap(nullptr, sizeof(FaseThread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            fail_for_good(
                fail(SP_E_NO_MEMORY, 0, "no memory for the log of a thread, or more than {} threads at a time", threads_max).value());
            return nullptr;
        }
        auto* const made = new (memory) FaseThread{};
        made->slot = &order_.slot(number);
        made->number = number;
        auto ready = made->record.reserve(record_words + piece_words_max);
        if (ready) {
            ready = prepare_logs_of(*made);
        }
        if (!ready) {
            made->~FaseThread();
            munmap(memory, sizeof(FaseThread));
            fail_for_good(ready.error());
            return nullptr;
        }
        threads_[number] = made;
        thread_count_.store(number + 1, std::memory_order_release);
        order_.set_slots(number + 1);
    }
    own_log.serial = serial_;
    own_log.thread = threads_[number];
    return threads_[number];
}

Result<void> FaseLogs::prepare_logs_of(FaseThread& thread) noexcept
{
    thread.log = &shared_logs_.log_of(thread.number, thread.own_log);
    if (shared_logs_.are_used()) {
        return {};
    }
    const std::uint64_t run = parts_.pool->facts().generation;
    const auto writer = is_direct_ ? logs::LogWriter::appender : logs::LogWriter::groups;
    if (auto done = thread.own_log.init(space_, *medium_, thread.number, run, writer); !done || !has_large_logs_) {
        return done;
    }
    return thread.large_log.init(space_, *medium_, threads_max + thread.number, run, logs::LogWriter::appender);
}

/// A FASE that its thread leaves unfinished is over: no thread will add to it, and its lock keeps others from the data that it guards.
void FaseLogs::thread_ends() noexcept
{
    FaseThread* const own = own_if_any();
    if (own == nullptr) {
        return;
    }
    if (is_running_.load(std::memory_order_acquire)) {
        end_fase(*own);
    }
    release(*own);
    own_log.is_ending = true;
}

void FaseLogs::release(FaseThread& own) noexcept
{
    const std::lock_guard guard(threads_lock_);
    free_threads_[free_thread_count_++] = own.number;
    own_log = {};
}

void FaseLogs::fail_for_good(const Failure& failure) noexcept
{
    {
        const std::lock_guard guard(failure_lock_);
        if (has_failed()) {
            return;
        }
        failure_ = failure;
        has_failed_.store(true, std::memory_order_release);
    }
    group_.fail_for_good(failure);
    space_.wake_waiters();
    parts_.give_up(parts_.engine, failure);
}

// ---- Stores -------------------------------------------------------------------------------------

void FaseLogs::put(FaseThread& own, std::uint64_t offset, const void* address, std::size_t size) noexcept
{
    const auto* bytes = static_cast<const std::byte*>(address);
    own.newest_words.forget(offset, size);
    while (size != 0) {
        const std::size_t here = std::min<std::size_t>(size, piece_bytes);
        if (own.record.words() > record_words) [[unlikely]] {
            hand_over(inside_fase() ? Handover::inside : Handover::outside);
        }
        own.record.add_range(offset, bytes, here);
        offset += here;
        bytes += here;
        size -= here;
    }
    own.has_stored = true;
}

void FaseLogs::add(const void* address, std::size_t size) noexcept
{
    const std::uint64_t offset = offset_of(address);
    if (offset == no_offset || size == 0 || has_failed()) {
        return;
    }
    // Most stores are of a word, by a thread that has stored before.
    if (FaseThread* const thread = own_if_any(); thread != nullptr && size == sizeof(std::uint64_t) &&
                                                 offset % sizeof(std::uint64_t) == 0 && thread->record.words() <= record_words &&
                                                 is_running_.load(std::memory_order_acquire)) {
        std::uint64_t word = 0;
        std::memcpy(&word, address, sizeof word);
        const std::uint64_t number = offset / sizeof word;
        if (const std::uint64_t index = thread->newest_words.find(number); index != NewestWords::no_index) {
            thread->record.change_word(index, word);
        } else {
            thread->record.add_word(number, word);
            thread->newest_words.note(number, thread->record.index_of_newest());
        }
        thread->has_stored = true;
        return;
    }
    const std::size_t inside = std::min<std::uint64_t>(size, parts_.image_bytes_max - offset);
    if (!is_running_.load(std::memory_order_acquire)) [[unlikely]] {
        const std::lock_guard guard(early_lock_);
        early_pages_.note(offset, inside);
        return;
    }
    if (FaseThread* const thread = own(); thread != nullptr) {
        put(*thread, offset, address, inside);
    }
}

void FaseLogs::add_shared(const void* address, std::size_t size) noexcept
{
    add(address, size);
    hand_over(inside_fase() ? Handover::inside : Handover::outside);
}

void FaseLogs::add_value(std::uint64_t offset, const void* bytes, std::size_t size) noexcept
{
    if (offset >= parts_.image_bytes_max || size > parts_.image_bytes_max - offset || size == 0 || has_failed()) {
        return;
    }
    if (FaseThread* const thread = own(); thread != nullptr) {
        put(*thread, offset, bytes, size);
    }
}

void FaseLogs::hand_over_value(bool goes_on, bool is_part) noexcept
{
    FaseThread* const thread = own();
    if (thread == nullptr) {
        return;
    }
    // Also where there is no record: what the call of a section stores is a part of it.
    thread->is_part = is_part;
    if (thread->record.empty()) {
        return;
    }
    thread->has_stored = !goes_on;
    if (goes_on) {
        thread->parts.store(thread->parts.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    end_fase(*thread);
}

// ---- Records ------------------------------------------------------------------------------------

bool FaseLogs::make_room(FaseThread& own, logs::RedoLog& log) noexcept
{
    constexpr std::uint64_t look_again_ns = 100'000'000;
    std::uint64_t stuck_since_ns = 0;
    logs::WaitOnFullDisk wait(space_);
    while (!has_failed()) {
        const std::uint32_t seen = space_.returns().load(std::memory_order_acquire);
        const logs::RedoLog::Room room = log.prepare(own.record.words());
        if (space_.is_getting_full() || room == logs::RedoLog::Room::wait) {
            parts_.request_replay(parts_.engine);
        }
        if (room == logs::RedoLog::Room::ready) {
            return true;
        }
        const std::uint64_t now_ns = os::monotonic_ns();
        stuck_since_ns = stuck_since_ns == 0 || !open_fases_.any() ? now_ns : stuck_since_ns;
        if (room == logs::RedoLog::Room::too_large || now_ns - stuck_since_ns > parts_.wait_max_ns) {
            fail_for_good(fail(SP_E_TRANSACTION_TOO_LARGE, 0,
                               "the log of {} KiB is full, and a section that has handed a part over does not end: its stores cannot "
                               "become durable; divide the section, or make a larger pool",
                               space_.chunk_count() * logs::chunk_bytes / kib)
                              .value());
            return false;
        }
        if (wait.is_over()) {
            fail_for_good(
                fail(SP_E_NO_SPACE, 0, "{}: the log is full, and the disk has no room for more of it; free some space", medium_->path())
                    .value());
            return false;
        }
        os::futex_wait(space_.returns(), seen, now_ns + look_again_ns);
    }
    return false;
}

void FaseLogs::append(FaseThread& own, bool begins_open) noexcept
{
    const bool is_large = has_large_logs_ && own.record.words() >= large_record_words;
    logs::RedoLog& log = is_large ? own.large_log : *own.log;
    if (!make_room(own, log)) {
        own.record.clear();
        own.newest_words.forget();
        return;
    }
    logs::CommitOrder::announce_to_counter(*own.slot, std::max(own.newest, Timestamp{1}));
    own.is_open = own.is_open || begins_open;
    const Timestamp timestamp = begins_open ? open_fases_.open(clock_) : clock_.next();
    logs::CommitOrder::settle(*own.slot, timestamp);
    const std::uint32_t flags = is_direct_ ? direct_.settle(timestamp, own.record.words(), own.is_open || own.is_part) : 0;
    constexpr std::uint64_t no_link = 0;
    log.append(own.record, timestamp, no_link, flags);
    const bool has_fence = is_direct_ || (is_large && !is_removed(Canary::large_record_fence));
    const bool is_intact = !has_fence || logs::fence_log(*medium_);
    logs::CommitOrder::persisted(*own.slot, timestamp);
    logs::CommitOrder::close(*own.slot);
    own.record.clear();
    own.newest_words.forget();
    own.newest = timestamp;
    if (parts_.acknowledge == Acknowledge::order) {
        group_.note_unawaited();
    }
    if (!is_intact) [[unlikely]] {
        fail_for_good(logs::loss_of(*medium_));
    }
}

void FaseLogs::end_fase(FaseThread& own) noexcept
{
    if (!own.record.empty()) {
        append(own, false);
    }
    if (own.is_open) {
        own.is_open = false;
        open_fases_.close();
    }
    if (own.has_stored) {
        own.has_stored = false;
        own.fases.store(own.fases.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
}

void FaseLogs::hand_over(Handover handover) noexcept
{
    if (!is_running_.load(std::memory_order_acquire)) {
        return;
    }
    if (FaseThread* const own = own_if_any(); own != nullptr) {
        hand_over(*own, handover);
    }
    if (handover == Handover::section_ends && parts_.acknowledge == Acknowledge::unlock) {
        // While the lock is held: what comes later, this section has not seen.
        own_log.awaited = newest_to_await();
    }
}

void FaseLogs::hand_over(FaseThread& own, Handover handover) noexcept
{
    if (own_log.is_ending) [[unlikely]] {
        // The heap takes the thread's free blocks back. If the session stays open after all, the next section is as any other.
        end_fase(own);
        release(own);
        own_log.is_ending = handover != Handover::section_ends;
        return;
    }
    switch (handover) {
    case Handover::section_ends:
    case Handover::outside: end_fase(own); return;
    case Handover::call_ends:
        if (own.is_open) {
            end_fase(own);
        }
        return;
    case Handover::inside:
        if (!own.record.empty() && !is_removed(Canary::inner_release)) {
            own.parts.store(own.parts.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            append(own, !own.is_open);
        }
        return;
    }
}

// ---- Durability ---------------------------------------------------------------------------------

/// A FASE may have read newer data than it has stored, so it waits for all that there was.
void FaseLogs::acknowledge() noexcept
{
    const bool waits_always = parts_.acknowledge == Acknowledge::unlock;
    if (waits_always ? order_.durable() >= own_log.awaited : is_loss_bounded()) [[likely]] {
        return;
    }
    const Timestamp needed = waits_always ? own_log.awaited : clock_.now();
    const auto may_wait = [this] {
        return is_running_.load(std::memory_order_acquire) && !has_failed() && !is_removed(Canary::unlock_wait);
    };
    while (may_wait() && !await(needed, os::monotonic_ns() + parts_.wait_max_ns)) {
        if (open_fases_.any()) {
            // That FASE may wait for this thread.
            own_statistic(OwnStatistic::unlocks_not_durable).fetch_add(1, std::memory_order_relaxed);
            return;
        }
    }
}

bool FaseLogs::is_behind() noexcept
{
    const std::uint64_t oldest_ns = group_.round_oldest_ns();
    return oldest_ns != 0 && os::monotonic_ns() - oldest_ns >= parts_.loss_max_ns;
}

Result<void> FaseLogs::wait_durable(std::uint64_t deadline_ns) noexcept
{
    if (FaseThread* const own = own_if_any(); own != nullptr) {
        end_fase(*own);
    }
    if (has_failed()) {
        return pass_on(failure_);
    }
    return await(newest_to_await(), deadline_ns);
}

}  // namespace stillpoint::nvthreads
