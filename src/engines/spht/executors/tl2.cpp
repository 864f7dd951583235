#include "engines/spht/executors/tl2.hpp"

#include <algorithm>

#include "core/canary.hpp"
#include "engines/spht/transactional_memory.hpp"

namespace stillpoint::spht {

Tl2::Tl2(TransactionalMemory& memory, logs::CommitOrder::Slot& slot, SerialGate::Place& place, std::uint64_t number) noexcept
    : Transaction(memory, slot, place, number), locks_(memory.locks()), own_lock_word_(number << 1 | 1)
{
}

Result<void> Tl2::reserve()
{
    constexpr std::uint64_t reads_max = std::uint64_t{1} << 26;
    if (auto done = reads_.reserve(reads_max, "what a transaction reads"); !done) {
        return done;
    }
    if (auto done = locked_.reserve(WriteSet::entries_max, "the lines that a transaction writes"); !done) {
        return done;
    }
    committing_.locks_lines = true;
    always_looks_ = memory_.protocol().logs_old_values();
    locks_.show_in(view_);
    view_.lines = reads_.data();
    view_.line_count_max = reads_.capacity();
    return Transaction::reserve();
}

/// The moment as of which the thread read last will do, until it meets a line that is newer: what it reads has not changed since.
void Tl2::enter() noexcept
{
    view_.line_count = 0;
    view_.newest_read = 0;
    view_.newest_durable_read = 0;
    view_.keeps_lines = wishes_.read_only ? 0 : 1;
    SerialGate& gate = memory_.gate();
    if (wishes_.privatizes && !gate.has_moments()) [[unlikely]] {
        gate.want_moments();
    }
    enter_gate();
    view_.settled = memory_.order().durable();
    const bool has_met_newer = looks_left_ != 0;
    looks_left_ -= has_met_newer ? 1 : 0;
    if (has_met_newer || view_.read_before == 0 || wishes_.alone || gate.has_moments() || always_looks_) [[unlikely]] {
        look_at_clock();
    }
}

void Tl2::look_at_clock() noexcept
{
    view_.read_before = memory_.clock().moment();
    if (memory_.gate().has_moments()) {
        SerialGate::publish_moment(place_, view_.read_before);
    }
}

void Tl2::await_others(Timestamp timestamp) noexcept
{
    if (wishes_.privatizes) {
        memory_.gate().await_moments_after(std::max({VersionLocks::not_awaited(timestamp), view_.newest_read, view_.settled}));
    }
}

bool Tl2::reads_hold() noexcept { return lines_are_older_than(view_.read_before); }

/// Every line that was read is so old.
bool Tl2::lines_are_older_than(Timestamp moment) const noexcept
{
    const std::uint64_t count = wishes_.read_only ? 0 : view_.line_count;
    for (std::uint64_t i = 0; i < count; ++i) {
        const VersionLocks::Lock* const lock = VersionLocks::lock_at(reads_[i]);
        std::uint64_t word = lock->load(std::memory_order_acquire);
        if (VersionLocks::is_locked(word)) {
            if (!is_own(word)) {
                return false;
            }
            const auto* const end = locked_.data() + locked_count_;
            word = std::find_if(locked_.data(), end, [&](const LockedLine& line) { return line.lock == lock; })->before;
        }
        if (VersionLocks::version(word) >= moment) {
            return false;
        }
    }
    return true;
}

/// Moves the moment as of which the transaction reads to now. False: it has read what has changed; the next attempt reads as of now. A
/// thread that has met a newer line is likely to meet more.
bool Tl2::extend() noexcept
{
    constexpr std::uint32_t transactions = 16;
    looks_left_ = transactions;
    const Timestamp before = view_.read_before;
    look_at_clock();
    return wishes_.read_only ? view_.line_count == 0 : lines_are_older_than(before);
}

bool Tl2::read_with_care(const std::uint64_t* word, std::uint64_t& value) noexcept
{
    value = 0;
    if (doomed_) {
        return false;
    }
    const WriteSet::Entry* const written = find_written(word);
    if (written != nullptr && written->mask == ~std::uint64_t{0}) {
        value = written->value;
        return true;
    }
    VersionLocks::Lock& lock = locks_.of(reinterpret_cast<std::uintptr_t>(word));
    unsigned turns = 0;
    while (true) {
        const std::uint64_t before = lock.load(std::memory_order_acquire);
        if (VersionLocks::is_locked(before)) [[unlikely]] {
            if (is_own(before)) {  // own_line() has looked at its version.
                const std::uint64_t found = __atomic_load_n(word, __ATOMIC_RELAXED);
                value = written == nullptr ? found : written->over(found);
                return true;
            }
            if (turns == VersionLocks::looks_max) {
                return doom();
            }
            logs::wait_turn(turns);
            continue;
        }
        const std::uint64_t found = __atomic_load_n(word, __ATOMIC_RELAXED);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (lock.load(std::memory_order_relaxed) != before) [[unlikely]] {
            continue;
        }
        if (VersionLocks::version(before) >= view_.read_before) [[unlikely]] {
            if (!extend()) {
                return doom();
            }
            continue;
        }
        if (!view_.note(VersionLocks::word_of(lock), VersionLocks::version(before))) {
            too_large_ = true;
            return doom();
        }
        value = written == nullptr ? found : written->over(found);
        return true;
    }
}

bool Tl2::own_line(std::uintptr_t address) noexcept
{
    const std::uint64_t before_count = locked_count_;
    if (!lock_line(address)) {
        return doom();
    }
    if (locked_count_ != before_count && VersionLocks::version(locked_[before_count].before) >= view_.read_before && !extend()) {
        return doom();
    }
    return true;
}

bool Tl2::lock_line(std::uintptr_t address) noexcept
{
    VersionLocks::Lock& lock = locks_.of(address);
    std::uint64_t before = lock.load(std::memory_order_relaxed);
    unsigned turns = 0;
    while (!is_own(before)) {
        if (VersionLocks::is_locked(before)) {
            if (turns == VersionLocks::looks_max) {
                return false;
            }
            logs::wait_turn(turns);
            before = lock.load(std::memory_order_relaxed);
        } else if (lock.compare_exchange_weak(before, own_lock_word_, std::memory_order_acq_rel, std::memory_order_relaxed)) {
            locked_[locked_count_++] = {&lock, before};
            return true;
        }
    }
    return true;
}

/// The lines that were written, and those of blocks that are freed: a transaction that still finds its way to such a block meets a conflict
/// there, and not the block's next life. So lines of a block that is new need no lock: others come to it by a line that has one.
bool Tl2::lock_lines() noexcept
{
    for (const WriteSet::Entry& entry : writes_) {
        const auto address = reinterpret_cast<std::uintptr_t>(entry.word);
        if (!is_fresh(address) && !lock_line(address)) {
            return false;
        }
    }
    for (std::uint64_t i = 0; i < freed_count_; ++i) {
        const Heap::Block block = memory_.heap()->find_block(freed_[i]);
        if (block.begin != freed_[i]) {  // Another transaction has freed it.
            return false;
        }
        const auto begin = reinterpret_cast<std::uintptr_t>(freed_[i]);
        const std::uintptr_t end = begin + std::min<std::uint64_t>(block.usable_bytes, VersionLocks::covered_bytes);
        for (std::uintptr_t line = begin; line < end; line += cache_line_bytes) {
            if (!lock_line(line)) {
                return false;
            }
        }
        if (!lock_line(end - 1)) {
            return false;
        }
    }
    return true;
}

/// The newest version that the transaction has read or replaces, of those that were not settled when it began; and of those the newest
/// that may not be durable yet.
Tl2::Seen Tl2::newest_seen() const noexcept
{
    Seen seen{view_.newest_read, view_.newest_durable_read};
    for (std::uint64_t i = 0; i < locked_count_; ++i) {
        const Timestamp version = VersionLocks::version(locked_[i].before);
        seen.newest = std::max(seen.newest, version);
        seen.awaited = VersionLocks::is_awaited(version) ? std::max(seen.awaited, version) : seen.awaited;
    }
    return seen;
}

Timestamp Tl2::choose_timestamp(bool is_durable) const noexcept
{
    return timestamp_after(std::max(newest_seen().newest, view_.settled), is_durable);
}

Timestamp Tl2::acquire(bool is_durable) noexcept
{
    if (!lock_lines()) {
        return 0;
    }
    const Seen seen = newest_seen();
    committing_.depends_on = seen.awaited;
    const Timestamp timestamp = timestamp_after(std::max(seen.newest, view_.settled), is_durable);
    if (is_removed(Canary::read_validation) || reads_hold()) {
        return timestamp;
    }
    memory_.protocol().skip(timestamp);
    return 0;
}

void Tl2::publish(Timestamp timestamp) noexcept
{
    write_back();
    const Timestamp version = committing_.is_logged ? VersionLocks::not_awaited(timestamp) : timestamp;
    for (std::uint64_t i = 0; i < locked_count_; ++i) {
        locked_[i].lock->store(version << 1, std::memory_order_release);
    }
    locked_count_ = 0;
}

void Tl2::release() noexcept
{
    for (std::uint64_t i = 0; i < locked_count_; ++i) {
        locked_[i].lock->store(locked_[i].before, std::memory_order_release);
    }
    locked_count_ = 0;
}

}  // namespace stillpoint::spht
