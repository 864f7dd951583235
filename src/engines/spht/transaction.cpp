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
/// A line that another transaction is just writing: so many looks before that counts as a conflict.
constexpr unsigned looks_at_locked_line = 100;

void store_word(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept
{
    if (mask == ~std::uint64_t{0}) {
        __atomic_store_n(word, value, __ATOMIC_RELAXED);
        return;
    }
    // Neighbouring bytes may be another transaction's: bytes of one line are not, those of one word can be volatile memory's.
    auto* const bytes = reinterpret_cast<unsigned char*>(word);
    for (unsigned i = 0; i < 8; ++i) {
        if ((mask >> (i * 8) & 0xff) != 0) {
            __atomic_store_n(bytes + i, static_cast<unsigned char>(value >> (i * 8)), __ATOMIC_RELAXED);
        }
    }
}

std::uint8_t byte_mask(std::uint64_t mask) noexcept
{
    std::uint8_t bytes = 0;
    for (unsigned i = 0; i < 8; ++i) {
        bytes |= static_cast<std::uint8_t>((mask >> (i * 8) & 1) << i);
    }
    return bytes;
}

}  // namespace

Transaction::Transaction(TransactionalMemory& memory, logs::CommitOrder::Slot& slot, SerialGate::Place& place,
                         std::uint64_t number) noexcept
    : memory_(memory), slot_(slot), place_(place), own_lock_word_(number << 1 | 1)
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
    return record_.reserve(record_words_reserved);
}

void Transaction::forget() noexcept
{
    writes_.clear();
    read_count_ = 0;
    allocated_count_ = 0;
    freed_count_ = 0;
    newest_read_ = 0;
    doomed_ = false;
    too_large_ = false;
}

void Transaction::begin(const Wishes& wishes) noexcept
{
    wishes_ = wishes;
    depth_ = 1;
    forget();
    if (wishes_.alone) {
        memory_.gate().enter_alone(place_);
    } else {
        memory_.gate().enter(place_);
    }
    read_version_ = memory_.clock().now();
}

void Transaction::leave_gate() noexcept
{
    if (wishes_.alone) {
        memory_.gate().leave_alone(place_);
    } else {
        memory_.gate().leave(place_);
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
    const Timestamp now = memory_.clock().now();
    if (wishes_.read_only ? newest_read_ != 0 : !reads_hold(read_version_)) {
        return false;
    }
    read_version_ = now;
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
            if (turns == looks_at_locked_line) {
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
        newest_read_ = std::max(newest_read_, std::max(VersionLocks::version(before), Timestamp{1}));
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

/// The record has the words that were written, and which blocks are allocated. A block that the transaction has both
/// allocated and freed is as it was.
void Transaction::build_record() noexcept
{
    record_.clear();
    for (const WriteSet::Entry& entry : writes_) {
        if (const std::uint64_t offset = memory_.offset_of(entry.word); offset != TransactionalMemory::no_offset) {
            record_.add_bytes(offset / 8, byte_mask(entry.mask), entry.value);
        }
    }
    const Heap& heap = *memory_.heap();
    for (std::uint64_t i = 0; i < allocated_count_; ++i) {
        const Heap::BlockState state = heap.state_of_block(allocated_[i]);
        record_.add_range(memory_.offset_of(state.bytes), state.bytes, state.size_bytes);
    }
    constexpr std::uint64_t nothing = 0;
    for (std::uint64_t i = 0; i < freed_count_; ++i) {
        const Heap::BlockState state = heap.state_of_block(freed_[i]);
        record_.add_range(memory_.offset_of(state.bytes), &nothing, state.size_bytes);
    }
}

/// Before anything is announced: others wait for what is.
Outcome Transaction::make_room() noexcept
{
    if (record_.overflowed()) {
        failure_ = fail(SP_E_TRANSACTION_TOO_LARGE, 0, "the transaction writes more than {} MiB; divide it",
                        record_words_reserved * 8 / mib)
                       .value();
        return Outcome::failed;
    }
    if (auto room = memory_.make_room(log_, record_.words()); !room) {
        failure_ = room.error();
        return Outcome::failed;
    }
    return Outcome::done;
}

bool Transaction::lock_lines() noexcept
{
    locked_count_ = 0;
    for (const WriteSet::Entry& entry : writes_) {
        VersionLocks::Lock& lock = memory_.locks().of(reinterpret_cast<std::uintptr_t>(entry.word));
        std::uint64_t before = lock.load(std::memory_order_relaxed);
        unsigned turns = 0;
        while (true) {
            if (is_own(before)) {
                break;
            }
            if (VersionLocks::is_locked(before)) {
                if (turns == looks_at_locked_line) {
                    return false;
                }
                logs::wait_turn(turns);
                before = lock.load(std::memory_order_relaxed);
            } else if (lock.compare_exchange_weak(before, own_lock_word_, std::memory_order_acq_rel, std::memory_order_relaxed)) {
                locked_[locked_count_++] = {&lock, before};
                break;
            }
        }
    }
    return true;
}

void Transaction::unlock_lines() noexcept
{
    for (std::uint64_t i = 0; i < locked_count_; ++i) {
        locked_[i].lock->store(locked_[i].before, std::memory_order_release);
    }
    locked_count_ = 0;
}

/// Later than every transaction whose effects this one has seen or replaces.
Timestamp Transaction::choose_timestamp() const noexcept
{
    Timestamp earlier = newest_read_;
    for (std::uint64_t i = 0; i < locked_count_; ++i) {
        earlier = std::max(earlier, VersionLocks::version(locked_[i].before));
    }
    Timestamp now = memory_.clock().now();
    while (now <= earlier) {
        now = memory_.clock().now();
    }
    return now;
}

void Transaction::write_back() noexcept
{
    for (const WriteSet::Entry& entry : writes_) {
        store_word(entry.word, entry.value, entry.mask);
    }
}

void Transaction::publish(Timestamp timestamp) noexcept
{
    for (std::uint64_t i = 0; i < locked_count_; ++i) {
        locked_[i].lock->store(timestamp << 1, std::memory_order_release);
    }
    locked_count_ = 0;
}

Outcome Transaction::give_up(Outcome outcome) noexcept
{
    abort();
    return outcome;
}

Outcome Transaction::commit_reads() noexcept
{
    const Timestamp newest = newest_read_;
    leave_gate();
    depth_ = 0;
    if (wishes_.waits_for_reads && newest > memory_.order().durable() && !is_removed(Canary::read_wait)) {
        if (auto done = memory_.make_durable(nullptr, newest); !done) {
            failure_ = done.error();
            return Outcome::failed;
        }
    }
    return Outcome::done;
}

Outcome Transaction::make_durable(Timestamp timestamp) noexcept
{
    const bool intact = memory_.persist_log();
    memory_.links().scan_others(slot_, search_);
    logs::CommitOrder::persisted(slot_, timestamp);
    auto done = intact ? memory_.make_durable(&slot_, timestamp) : memory_.make_durable(nullptr, timestamp);
    memory_.links().finish(slot_, search_, intact && done);
    if (!done) {
        failure_ = done.error();
        return Outcome::failed;
    }
    return Outcome::done;
}

Outcome Transaction::commit() noexcept
{
    if (doomed_) {
        if (too_large_) {
            failure_ = fail(SP_E_TRANSACTION_TOO_LARGE, 0, "the transaction reads, writes, allocates or frees too much; divide it").value();
        }
        return give_up(too_large_ ? Outcome::failed : Outcome::conflict);
    }
    if (writes_.size() == 0 && allocated_count_ == 0 && freed_count_ == 0) {
        return commit_reads();
    }
    build_record();
    const bool is_durable = !record_.empty();  // Volatile memory alone may have been written.
    if (is_durable) {
        if (const Outcome room = make_room(); room != Outcome::done) {
            return give_up(room);
        }
    }
    memory_.links().announce(slot_, search_, is_durable ? log_.next_position() : 0, memory_.clock().now());
    if (!lock_lines()) {
        log_.cancel();
        return give_up(Outcome::conflict);
    }
    const Timestamp timestamp = choose_timestamp();
    if (!is_removed(Canary::read_validation) && !reads_hold(read_version_)) {
        log_.cancel();
        return give_up(Outcome::conflict);
    }
    if (is_durable) {
        memory_.links().note_timestamp(search_, timestamp);
        logs::CommitOrder::settle(slot_, timestamp);
    }
    write_back();
    publish(timestamp);
    if (!is_durable) {
        memory_.links().withdraw(slot_);
        newest_read_ = std::max(newest_read_, Timestamp{1});
        free_blocks(freed_, freed_count_);
        return commit_reads();
    }
    log_.append(record_, timestamp);
    leave_gate();
    depth_ = 0;
    const Outcome outcome = make_durable(timestamp);
    free_blocks(freed_, freed_count_);
    return outcome;
}

/// Their states are in the log, or never were.
void Transaction::free_blocks(const os::ReservedArray<void*>& blocks, std::uint64_t count) noexcept
{
    if (count == 0) {
        return;
    }
    calls_heap_ = true;
    {
        const fase::InlineGuard section;
        for (std::uint64_t i = 0; i < count; ++i) {
            release_block(*memory_.heap(), blocks[i]);
        }
    }
    calls_heap_ = false;
}

void Transaction::abort() noexcept
{
    unlock_lines();
    memory_.links().withdraw(slot_);
    leave_gate();
    depth_ = 0;
    free_blocks(allocated_, allocated_count_);
    forget();
}

}  // namespace stillpoint::spht
