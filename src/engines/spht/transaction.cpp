#include "engines/spht/transaction.hpp"

#include <algorithm>
#include <cstring>

#include "core/canary.hpp"
#include "engines/spht/transactional_memory.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/fase_gate.hpp"

namespace stillpoint::spht {

namespace {

constexpr std::uint64_t reads_max = std::uint64_t{1} << 26;
constexpr std::uint64_t blocks_max = std::uint64_t{1} << 20;
/// Room for a record that fills half of the largest log that is kept without looking twice: what is larger is refused.
constexpr std::uint64_t record_words_reserved = std::uint64_t{1} << 25;

}  // namespace

Transaction::Transaction(TransactionalMemory& memory, logs::CommitOrder::Slot& slot, SerialGate::Place& place,
                         std::uint64_t number) noexcept
    : memory_(memory), slot_(slot), place_(place), own_lock_word_(number << 1 | 1),
      committing_{slot, search_, log_, record_, static_cast<std::uint32_t>(number)}
{
}

Result<void> Transaction::reserve()
{
    if (auto done = writes_.reserve(); !done) {
        return done;
    }
    if (auto done = reads_.reserve(reads_max, "what a transaction reads"); !done) {
        return done;
    }
    if (auto done = locked_.reserve(WriteSet::entries_max, "the lines that a transaction writes"); !done) {
        return done;
    }
    if (auto done = allocated_.reserve(blocks_max, "the blocks that a transaction allocates"); !done) {
        return done;
    }
    if (auto done = freed_.reserve(blocks_max, "the blocks that a transaction frees"); !done) {
        return done;
    }
    if (auto done = actions_.reserve(blocks_max, "the actions of a transaction"); !done) {
        return done;
    }
    if (auto done = search_.reserve(); !done) {
        return done;
    }
    if (auto done = undo_record_.reserve(record_words_reserved); !done) {
        return done;
    }
    return record_.reserve(record_words_reserved);
}

void Transaction::forget() noexcept
{
    writes_.clear();
    read_count_ = 0;
    allocated_count_ = 0;
    freed_count_ = 0;
    newest_read_ = 0;
    newest_durable_read_ = 0;
    doomed_ = false;
    too_large_ = false;
}

void Transaction::begin(const Wishes& wishes) noexcept
{
    wishes_ = wishes;
    depth_ = 1;
    was_rolled_back_ = false;
    forget();
    SerialGate& gate = memory_.gate();
    if (wishes_.privatizes && !gate.has_moments()) [[unlikely]] {
        gate.want_moments();
    }
    if (wishes_.alone) {
        gate.enter_alone(place_);
    } else {
        gate.enter(place_);
    }
    read_version_ = memory_.clock().moment();
    if (gate.has_moments()) {
        SerialGate::publish_moment(place_, read_version_);
    }
}

void Transaction::leave_gate() noexcept
{
    if (wishes_.alone) {
        memory_.gate().leave_alone(place_);
    } else {
        memory_.gate().leave(place_);
    }
}

/// After a commit that has made memory private, or has learned that it is.
void Transaction::await_others(Timestamp timestamp) noexcept
{
    if (wishes_.privatizes) {
        memory_.gate().await_moments_after(timestamp);
    }
}

/// No line that was read has changed since.
bool Transaction::reads_hold(Timestamp read_version) const noexcept
{
    for (std::uint64_t i = 0; i < read_count_; ++i) {
        std::uint64_t word = reads_[i]->load(std::memory_order_acquire);
        if (VersionLocks::is_locked(word)) {
            if (!is_own(word)) {
                return false;
            }
            const auto* const end = locked_.data() + locked_count_;
            word = std::find_if(locked_.data(), end, [&](const LockedLine& line) { return line.lock == reads_[i]; })->before;
        }
        if (VersionLocks::version(word) >= read_version) {
            return false;
        }
    }
    return true;
}

/// Moves the moment as of which the transaction reads to now.
bool Transaction::extend() noexcept
{
    const Timestamp now = memory_.clock().moment();
    if (wishes_.read_only ? newest_read_ != 0 : !reads_hold(read_version_)) {
        return false;
    }
    read_version_ = now;
    if (memory_.gate().has_moments()) {
        SerialGate::publish_moment(place_, now);
    }
    return true;
}

bool Transaction::read(const std::uint64_t* word, std::uint64_t& value) noexcept
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
            if (read_count_ == reads_.capacity()) [[unlikely]] {
                too_large_ = true;
                return doom();
            }
            reads_[read_count_++] = &lock;
        }
        value = written == nullptr ? found : (found & ~written->mask) | written->value;
        return true;
    }
}

bool Transaction::write(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept
{
    if (doomed_) {
        return false;
    }
    if (!writes_.put(word, value, mask)) [[unlikely]] {
        too_large_ = true;
        return doom();
    }
    return true;
}

void* Transaction::allocate(std::size_t bytes, std::size_t alignment) noexcept
{
    if (allocated_count_ == allocated_.capacity()) {
        too_large_ = true;
        doom();
        return nullptr;
    }
    calls_heap_ = true;
    void* block = nullptr;
    {
        const fase::InlineGuard section;
        Heap* const heap = memory_.heap();
        block = alignment <= 16 ? heap->allocate(bytes) : heap->allocate_aligned(alignment, bytes);
    }
    calls_heap_ = false;
    if (block != nullptr) {
        allocated_[allocated_count_++] = block;
    }
    return block;
}

bool Transaction::deallocate(void* block) noexcept
{
    if (freed_count_ == freed_.capacity()) {
        too_large_ = true;
        doom();
        return true;
    }
    if (memory_.heap()->state_of_block(block).size_bytes == 0) {
        // Perhaps another transaction has freed it since this one has read where it is.
        if (wishes_.read_only || reads_hold(read_version_)) {
            return false;
        }
        doom();
        return true;
    }
    if (std::find(freed_.data(), freed_.data() + freed_count_, block) != freed_.data() + freed_count_) {
        return false;
    }
    freed_[freed_count_++] = block;
    return true;
}

bool Transaction::on_commit(Action action, void* argument) noexcept
{
    if (action_count_ == actions_.capacity()) {
        return false;
    }
    actions_[action_count_++] = {action, argument, true};
    return true;
}

bool Transaction::on_abort(Action action, void* argument) noexcept
{
    if (action_count_ == actions_.capacity()) {
        return false;
    }
    actions_[action_count_++] = {action, argument, false};
    return true;
}

void Transaction::run_actions(bool committed)
{
    const std::uint64_t count = action_count_;
    action_count_ = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (actions_[i].on_commit == committed) {
            actions_[i].call(actions_[i].argument);
        }
    }
}

void Transaction::drop_actions() noexcept { action_count_ = 0; }

}  // namespace stillpoint::spht
