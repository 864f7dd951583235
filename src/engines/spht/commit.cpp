// The end of a transaction: what becomes durable of it, and in which order.

#include <algorithm>

#include "core/canary.hpp"
#include "engines/spht/transaction.hpp"
#include "engines/spht/transactional_memory.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/fase_gate.hpp"

namespace stillpoint::spht {

namespace {

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

}  // namespace

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
    add_freed();
}

void Transaction::add_freed() noexcept
{
    const Heap& heap = *memory_.heap();
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
        failure_ = fail(SP_E_TRANSACTION_TOO_LARGE, 0, "the transaction writes more than {} MiB; divide it", record_.words_max() * 8 / mib)
                       .value();
        return Outcome::failed;
    }
    if (auto room = memory_.protocol().make_room(committing_, record_.words()); !room) {
        failure_ = room.error();
        return Outcome::failed;
    }
    return Outcome::done;
}

bool Transaction::lock_line(std::uintptr_t address) noexcept
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
bool Transaction::lock_lines() noexcept
{
    locked_count_ = 0;
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

void Transaction::unlock_lines() noexcept
{
    for (std::uint64_t i = 0; i < locked_count_; ++i) {
        locked_[i].lock->store(locked_[i].before, std::memory_order_release);
    }
    locked_count_ = 0;
}

/// Later than every transaction whose effects this one has seen or replaces.
Timestamp Transaction::choose_timestamp(bool is_durable) const noexcept
{
    Timestamp earlier = newest_read_;
    for (std::uint64_t i = 0; i < locked_count_; ++i) {
        earlier = std::max(earlier, VersionLocks::version(locked_[i].before));
    }
    Timestamp now = memory_.clock().next();
    while (now <= earlier) {
        now = memory_.clock().next();
    }
    return VersionLocks::timestamp_for(now, is_durable);
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
    was_rolled_back_ = true;
    return outcome;
}

/// Returns when what was read is durable. False: nothing becomes durable any more.
bool Transaction::await_reads() noexcept
{
    if (wishes_.waits_for_reads && newest_durable_read_ > memory_.order().durable() && !is_removed(Canary::read_wait)) {
        if (auto done = memory_.await(newest_durable_read_); !done) {
            failure_ = done.error();
            return false;
        }
    }
    return true;
}

Outcome Transaction::commit_reads() noexcept
{
    leave_gate();
    depth_ = 0;
    const Outcome outcome = await_reads() ? Outcome::done : Outcome::failed;
    // The thread that has made memory private may be waiting still.
    await_others(newest_read_);
    return outcome;
}

Outcome Transaction::make_durable(Timestamp timestamp) noexcept
{
    if (!memory_.protocol().make_durable(committing_, timestamp)) [[unlikely]] {
        failure_ = memory_.failure_to_persist();
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
    if (wishes_.stores_plainly) {
        return commit_plain();
    }
    if (writes_.size() == 0 && allocated_count_ == 0 && freed_count_ == 0) {
        return commit_reads();
    }
    build_record();
    CommitProtocol& protocol = memory_.protocol();
    const bool is_durable = !record_.empty();  // Volatile memory alone may have been written.
    if (is_durable) {
        if (!protocol.prepare(*this, committing_)) {
            return give_up(Outcome::conflict);
        }
        if (const Outcome room = make_room(); room != Outcome::done) {
            return give_up(room);
        }
    } else if (!await_reads()) {
        // Before others see what was written: they do not wait for it.
        return give_up(Outcome::failed);
    }
    if (is_durable) {
        protocol.announce(committing_);
    }
    const bool locked = lock_lines();
    const Timestamp timestamp = locked ? choose_timestamp(is_durable) : 0;
    if (!locked || (!is_removed(Canary::read_validation) && !reads_hold(read_version_)) ||
        (is_durable && !protocol.settle(committing_, timestamp))) {
        if (is_durable) {
            protocol.cancel(committing_);
        }
        if (locked) {
            protocol.skip(timestamp);
        }
        return give_up(Outcome::conflict);
    }
    write_back();
    publish(timestamp);
    if (!is_durable) {
        protocol.skip(timestamp);
        leave_gate();
        depth_ = 0;
        await_others(timestamp);
        return Outcome::done;
    }
    protocol.log(committing_, timestamp);
    leave_gate();
    depth_ = 0;
    const Outcome outcome = make_durable(timestamp);
    await_others(timestamp);
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
