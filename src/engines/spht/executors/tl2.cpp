#include "engines/spht/executors/tl2.hpp"

#include "core/canary.hpp"
#include "engines/spht/transactional_memory.hpp"

namespace stillpoint::spht {

Result<void> Tl2::reserve()
{
    constexpr std::uint64_t reads_max = std::uint64_t{1} << 26;
    if (auto done = reads_.reserve(reads_max, "what a transaction reads"); !done) {
        return done;
    }
    if (auto done = locked_.reserve(WriteSet::entries_max, "the lines that a transaction writes"); !done) {
        return done;
    }
    return Transaction::reserve();
}

void Tl2::enter() noexcept
{
    read_count_ = 0;
    newest_durable_read_ = 0;
    SerialGate& gate = memory_.gate();
    if (wishes_.privatizes && !gate.has_moments()) [[unlikely]] {
        gate.want_moments();
    }
    enter_gate();
    read_version_ = memory_.clock().moment();
    if (gate.has_moments()) {
        SerialGate::publish_moment(place_, read_version_);
    }
}

void Tl2::await_others(Timestamp timestamp) noexcept
{
    if (wishes_.privatizes) {
        memory_.gate().await_moments_after(std::max(timestamp, read_version_));
    }
}

bool Tl2::reads_hold() noexcept
{
    for (std::uint64_t i = 0; i < read_count_; ++i) {
        std::uint64_t word = reads_[i]->load(std::memory_order_acquire);
        if (VersionLocks::is_locked(word)) {
            if (!is_own(word)) {
                return false;
            }
            auto* const end = locked_.data() + locked_count_;
            word = std::find_if(locked_.data(), end, [&](const LockedLine& line) { return line.lock == reads_[i]; })->before;
        }
        if (VersionLocks::version(word) >= read_version_) {
            return false;
        }
    }
    return true;
}

/// Moves the moment as of which the transaction reads to now.
bool Tl2::extend() noexcept
{
    const Timestamp now = memory_.clock().moment();
    if (wishes_.read_only ? read_count_ != 0 : !reads_hold()) {
        return false;
    }
    read_version_ = now;
    if (memory_.gate().has_moments()) {
        SerialGate::publish_moment(place_, now);
    }
    return true;
}

/// The usual case alone, without a call: the word was not written, and its line is older than the moment as of which is read.
int Tl2::read(const std::uint64_t* word, std::uint64_t& value) noexcept
{
    if (!doomed_ && !writes_.may_have(word)) [[likely]] {
        VersionLocks::Lock& lock = memory_.locks().of(reinterpret_cast<std::uintptr_t>(word));
        const std::uint64_t before = lock.load(std::memory_order_acquire);
        const std::uint64_t found = __atomic_load_n(word, __ATOMIC_RELAXED);
        std::atomic_thread_fence(std::memory_order_acquire);
        const bool is_steady = lock.load(std::memory_order_relaxed) == before && !VersionLocks::is_locked(before);
        if (is_steady && VersionLocks::version(before) < read_version_ && read_count_ < reads_.capacity()) [[likely]] {
            note_read(VersionLocks::version(before));
            reads_[wishes_.read_only ? 0 : read_count_] = &lock;
            ++read_count_;
            value = found;
            return SP_OK;
        }
    }
    return read_with_care(word, value) ? SP_OK : SP_E_CONFLICT;
}

bool Tl2::read_with_care(const std::uint64_t* word, std::uint64_t& value) noexcept
{
    value = 0;
    if (doomed_) {
        return false;
    }
    const WriteSet::Entry* const written = writes_.find(word);
    if (written != nullptr && written->mask == ~std::uint64_t{0}) {
        value = written->value;
        return true;
    }
    VersionLocks::Lock& lock = memory_.locks().of(reinterpret_cast<std::uintptr_t>(word));
    unsigned turns = 0;
    while (true) {
        const std::uint64_t before = lock.load(std::memory_order_acquire);
        if (VersionLocks::is_locked(before)) [[unlikely]] {
            if (is_own(before)) {  // own_line() has looked at its version.
                const std::uint64_t found = __atomic_load_n(word, __ATOMIC_RELAXED);
                value = written == nullptr ? found : (found & ~written->mask) | written->value;
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
        if (VersionLocks::version(before) >= read_version_) [[unlikely]] {
            if (!extend()) {
                return doom();
            }
            continue;
        }
        note_read(VersionLocks::version(before));
        if (!wishes_.read_only) {
            if (read_count_ >= reads_.capacity()) [[unlikely]] {
                too_large_ = true;
                return doom();
            }
            reads_[read_count_] = &lock;
        }
        ++read_count_;
        value = written == nullptr ? found : (found & ~written->mask) | written->value;
        return true;
    }
}

bool Tl2::own_line(std::uintptr_t address) noexcept
{
    const std::uint64_t before_count = locked_count_;
    if (!lock_line(address)) {
        return doom();
    }
    if (locked_count_ != before_count && VersionLocks::version(locked_[before_count].before) >= read_version_ && !extend()) {
        return doom();
    }
    return true;
}

bool Tl2::lock_line(std::uintptr_t address) noexcept
{
    VersionLocks::Lock& lock = memory_.locks().of(address);
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
/// there, and not the block's next life.
bool Tl2::lock_lines() noexcept
{
    for (const WriteSet::Entry& entry : writes_) {
        if (!lock_line(reinterpret_cast<std::uintptr_t>(entry.word))) {
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

Timestamp Tl2::choose_timestamp(bool is_durable) const noexcept
{
    Timestamp earlier = read_version_ - 1;  // All that was read is at least as old.
    for (std::uint64_t i = 0; i < locked_count_; ++i) {
        earlier = std::max(earlier, VersionLocks::version(locked_[i].before));
    }
    Timestamp now = memory_.clock().now();
    while (now <= earlier) {
        now = memory_.clock().now();
    }
    return VersionLocks::timestamp_for(now, is_durable);
}

Timestamp Tl2::acquire(bool is_durable) noexcept
{
    if (!lock_lines()) {
        return 0;
    }
    const Timestamp timestamp = choose_timestamp(is_durable);
    return is_removed(Canary::read_validation) || reads_hold() ? timestamp : 0;
}

void Tl2::publish(Timestamp timestamp) noexcept
{
    write_back();
    for (std::uint64_t i = 0; i < locked_count_; ++i) {
        locked_[i].lock->store(timestamp << 1, std::memory_order_release);
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
