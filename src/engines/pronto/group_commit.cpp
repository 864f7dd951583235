#include "engines/pronto/group_commit.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/canary.hpp"
#include "os/clock.hpp"

namespace stillpoint::pronto {

namespace {

/// Threads that a round woke come back with their next operations: a round that begins with the first of them
/// leaves the others to wait for the one after. So a round is held back a little, for as many as were in the last one.
constexpr std::uint64_t held_back_max_ns = 1'000'000;
/// A round ends before that if no operation came for so long.
constexpr std::uint64_t held_back_part = 2;  // of the time that a round takes

}  // namespace

Result<void> GroupCommit::start(Medium& medium, os::FutexLock& medium_lock, LogSpace& space,
                                void (*on_failure)(void*, const Failure&) noexcept, void* context)
{
    medium_ = &medium;
    medium_lock_ = &medium_lock;
    space_ = &space;
    on_failure_ = on_failure;
    on_failure_context_ = context;
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

std::uint64_t GroupCommit::add(LiveObject& object) noexcept
{
    bool wake = false;
    std::uint64_t turn = 0;
    {
        const std::lock_guard guard(list_lock_);
        if (!object.is_pending) {
            object.is_pending = true;
            object.next_pending = pending_;
            pending_ = &object;
        }
        wake = ++operations_ == awaited_operations_;
        turn = ++turns_;
    }
    if (wake) {
        wakes_.fetch_add(1, std::memory_order_acq_rel);
        os::futex_wake(wakes_, 1);
    }
    return turn;
}

Result<void> GroupCommit::await(const std::atomic<std::uint64_t>& durable, std::uint64_t wanted, std::uint64_t deadline_ns) noexcept
{
    while (true) {
        const std::uint32_t seen = rounds_.load(std::memory_order_acquire);
        if (durable.load(std::memory_order_acquire) >= wanted) {
            return {};
        }
        if (failed()) {
            return pass_on(failure_);
        }
        if (deadline_ns != UINT64_MAX && os::monotonic_ns() >= deadline_ns) {
            return fail(SP_E_TIMED_OUT, 0, "the operation was not durable yet when the time was over; wait again");
        }
        os::futex_wait(rounds_, seen, deadline_ns);
    }
}

Result<void> GroupCommit::wait_for_turn(std::uint64_t turn, std::uint64_t deadline_ns) noexcept
{
    return await(durable_turn_, turn, deadline_ns);
}

Result<void> GroupCommit::wait(const LiveObject& object, std::uint64_t number) noexcept
{
    return await(object.durable, number, UINT64_MAX);
}

void GroupCommit::drain() noexcept
{
    while (true) {
        const std::uint32_t seen = rounds_.load(std::memory_order_acquire);
        {
            const std::lock_guard guard(list_lock_);
            if ((pending_ == nullptr && rounds_begun_.load(std::memory_order_relaxed) == seen) || failed()) {
                return;
            }
            awaited_operations_ = 0;
        }
        wakes_.fetch_add(1, std::memory_order_acq_rel);
        os::futex_wake(wakes_, 1);
        os::futex_wait(rounds_, seen, os::monotonic_ns() + 10'000'000);
    }
}

void GroupCommit::run(void* self) { static_cast<GroupCommit*>(self)->loop(); }

void GroupCommit::loop() noexcept
{
    while (true) {
        await_work();
        do_round();
        if (stopping_.load(std::memory_order_acquire)) {
            const std::lock_guard guard(list_lock_);
            if (pending_ == nullptr || failed()) {
                return;
            }
        }
    }
}

void GroupCommit::await_work() noexcept
{
    std::uint64_t deadline_ns = UINT64_MAX;
    while (!stopping_.load(std::memory_order_acquire)) {
        const std::uint32_t seen = wakes_.load(std::memory_order_acquire);
        {
            const std::lock_guard guard(list_lock_);
            const bool drained_for = awaited_operations_ == 0;  // A drain waits: no holding back.
            if (operations_ >= operations_last_ || (operations_ != 0 && (drained_for || os::monotonic_ns() >= deadline_ns))) {
                return;
            }
            if (drained_for && operations_ == 0) {
                return;
            }
            awaited_operations_ = operations_ == 0 ? 1 : operations_last_;
            if (operations_ != 0 && deadline_ns == UINT64_MAX) {
                deadline_ns = os::monotonic_ns() + std::min(round_ns_ / held_back_part, held_back_max_ns);
            }
        }
        os::futex_wait(wakes_, seen, deadline_ns);
    }
}

void GroupCommit::do_round() noexcept
{
    const std::uint64_t begun_ns = os::monotonic_ns();
    LiveObject* objects = nullptr;
    std::uint64_t turn = 0;
    {
        const std::lock_guard guard(list_lock_);
        turn = turns_;
        objects = pending_;
        pending_ = nullptr;
        operations_last_ = std::max<std::uint64_t>(operations_, 1);
        operations_ = 0;
        awaited_operations_ = 1;
        rounds_begun_.fetch_add(1, std::memory_order_acq_rel);
    }
    Result<void> outcome = failed() ? pass_on(failure_) : Result<void>{};
    LiveObject* taken = nullptr;
    while (objects != nullptr) {
        LiveObject& object = *objects;
        const std::lock_guard guard(object.log_lock);
        {
            const std::lock_guard list_guard(list_lock_);
            objects = object.next_pending;
            object.is_pending = false;
        }
        object.captured_number = object.number.load(std::memory_order_relaxed);
        object.next_flushed = taken;
        taken = &object;
        if (outcome) {
            outcome = gather(object);
        }
    }
    if (outcome) {
        outcome = write_gathered();
    }
    if (outcome && taken != nullptr) {
        outcome = sync();
    }
    if (!outcome && !failed()) {
        failure_ = outcome.error();
        has_failed_.store(true, std::memory_order_release);
        on_failure_(on_failure_context_, failure_);
    }
    for (; outcome && taken != nullptr; taken = taken->next_flushed) {
        taken->durable.store(taken->captured_number, std::memory_order_release);
    }
    if (outcome) {
        durable_turn_.store(turn, std::memory_order_release);
    }
    round_ns_ = os::monotonic_ns() - begun_ns;
    rounds_.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(rounds_);
}

Result<void> GroupCommit::gather(LiveObject& object) noexcept
{
    while (object.dirty != no_chunk) {
        const ChunkIndex chunk = object.dirty;
        object.dirty = space_->state(chunk).next_dirty;
        if (auto done = gather_chunk(chunk); !done) {
            return done;
        }
    }
    return {};
}

Result<void> GroupCommit::gather_chunk(ChunkIndex chunk) noexcept
{
    ChunkState& state = space_->state(chunk);
    const bool has_header = state.dirty_low == 0;
    const std::uint64_t begin = state.dirty_low / page_bytes * page_bytes;
    const std::uint64_t end = round_up(state.dirty_high, page_bytes);
    state.dirty_low = 0;
    state.dirty_high = 0;
    if (auto done = gather_pages(chunk, begin, end); !done || !has_header) {
        return done;
    }
    return gather_pages(chunk, std::max(end, header_copy_offset / page_bytes * page_bytes), chunk_bytes);
}

/// Gathers pages of the mirror, from `at` on. A copy goes to the medium: the last page may get its next entry while it is written.
Result<void> GroupCommit::gather_pages(ChunkIndex chunk, std::uint64_t at, std::uint64_t end) noexcept
{
    while (at < end) {
        if (staged_pages_ == staging_pages) {
            if (auto done = write_gathered(); !done) {
                return done;
            }
        }
        const std::uint64_t pages = std::min((end - at) / page_bytes, staging_pages - staged_pages_);
        std::byte* const copy = staging_.data() + staged_pages_ * page_bytes;
        std::memcpy(copy, space_->mirror(chunk) + at, pages * page_bytes);
        writes_[write_count_++] = {space_->file_offset(chunk) + at, copy, pages * page_bytes};
        staged_pages_ += pages;
        at += pages * page_bytes;
    }
    return {};
}

Result<void> GroupCommit::write_gathered() noexcept
{
    if (write_count_ == 0) {
        return {};
    }
    const std::lock_guard guard(*medium_lock_);
    auto written = medium_->write({writes_.data(), write_count_});
    write_count_ = 0;
    staged_pages_ = 0;
    return written;
}

Result<void> GroupCommit::sync() noexcept
{
    if (is_removed(Canary::log_sync)) {
        return {};
    }
    const std::lock_guard guard(*medium_lock_);
    return medium_->sync();
}

}  // namespace stillpoint::pronto
