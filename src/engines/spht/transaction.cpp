#include "engines/spht/transaction.hpp"

#include <algorithm>

#include "engines/spht/executors/version_locks.hpp"
#include "engines/spht/transactional_memory.hpp"
#include "runtime/fase_gate.hpp"

namespace stillpoint::spht {

namespace {

constexpr std::uint64_t blocks_max = std::uint64_t{1} << 20;
/// Room for a record that fills half of the largest log that is kept without looking twice: what is larger is refused.
constexpr std::uint64_t record_words_reserved = std::uint64_t{1} << 25;

/// For executors without versions: the calling program asks for every word.
std::uint64_t always_locked = 1;

}  // namespace

Transaction::Transaction(TransactionalMemory& memory, logs::CommitOrder::Slot& slot, SerialGate::Place& place,
                         std::uint64_t number) noexcept
    : memory_(memory), slot_(slot), place_(place),
      committing_{slot, search_, memory.log_of(number, own_log_), record_, static_cast<std::uint32_t>(number)}
{
}

Result<void> Transaction::reserve()
{
    if (view_.versions == nullptr) {
        view_.versions = &always_locked;
    }
    if (auto done = writes_.reserve(); !done) {
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
    if (memory_.protocol().logs_old_values()) {
        if (auto done = undo_record_.reserve(record_words_reserved); !done) {
            return done;
        }
    }
    return record_.reserve(record_words_reserved);
}

void Transaction::forget() noexcept
{
    writes_.clear();
    view_.written = 0;
    freed_count_ = 0;
    doomed_ = false;
    too_large_ = false;
    if (allocated_count_ != 0) {
        allocated_count_ = 0;
        fresh_ = {};
    }
}

void Transaction::begin(const Wishes& wishes) noexcept
{
    wishes_ = wishes;
    depth_ = 1;
    was_rolled_back_ = false;
    forget();
    enter();
}

Timestamp Transaction::timestamp_after(Timestamp earlier, bool is_durable) const noexcept
{
    Timestamp now = memory_.clock().next();
    // The log is this thread's until it has its record. Another one may have appended to it just now, with the clock's present.
    const Timestamp passed = is_durable ? std::max(earlier, committing_.log.newest()) : earlier;
    while (now <= passed) {
        now = memory_.clock().next();
    }
    return VersionLocks::timestamp_for(now, is_durable);
}

void Transaction::enter_gate() noexcept
{
    if (wishes_.alone) {
        memory_.gate().enter_alone(place_);
    } else {
        memory_.gate().enter(place_);
    }
}

void Transaction::leave_gate() noexcept
{
    if (wishes_.alone) {
        if (wishes_.stores_plainly) {
            memory_.store_check().forbid();
        }
        memory_.gate().leave_alone(place_);
    } else {
        memory_.gate().leave(place_);
    }
}

bool Transaction::write(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept
{
    if (doomed_) {
        return false;
    }
    if (!writes_.put(word, value, mask, may_have_written(word))) [[unlikely]] {
        too_large_ = true;
        return doom();
    }
    view_.written |= read_view::written_bit(word);
    return true;
}

void* Transaction::allocate(std::size_t bytes, std::size_t alignment) noexcept
{
    if (allocated_count_ == allocated_.capacity()) {
        too_large_ = true;
        doom();
        return nullptr;
    }
    heap_call_begins();
    calls_heap_ = true;
    void* block = nullptr;
    {
        const fase::InlineGuard section;
        Heap* const heap = memory_.heap();
        block = alignment <= 16 ? heap->allocate(bytes) : heap->allocate_aligned(alignment, bytes);
    }
    calls_heap_ = false;
    if (block != nullptr) {
        fresh_[allocated_count_ % fresh_blocks] = {reinterpret_cast<std::uintptr_t>(block), bytes};
        allocated_[allocated_count_++] = block;
    }
    heap_call_ends();
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
        if (wishes_.read_only || reads_hold()) {
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
    if (action_count_ == 0) [[likely]] {
        return;
    }
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
