// The end of a transaction: what becomes durable of it, and in which order.

#include <algorithm>

#include "core/canary.hpp"
#include "engines/spht/store_word.hpp"
#include "engines/spht/transaction.hpp"
#include "engines/spht/transactional_memory.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/fase_gate.hpp"

namespace stillpoint::spht {

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

void Transaction::write_back() noexcept
{
    for (const WriteSet::Entry& entry : writes_) {
        store_word(entry.word, entry.value, entry.mask);
    }
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
    if (!wishes_.waits_for_reads || is_removed(Canary::read_wait)) {
        return true;
    }
    const Timestamp newest = newest_to_await();
    if (newest > memory_.order().durable()) {
        if (auto done = memory_.await(newest); !done) {
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
    await_others(0);
    return outcome;
}

/// For executors that let programs read by the view: what was read holds.
bool Transaction::try_end_reads() noexcept
{
    const bool is_simple = view_.read_before != 0 && depth_ == 1 && view_.written == 0 && changed_blocks() == 0 && action_count_ == 0 &&
                           !wishes_.alone && !wishes_.privatizes;
    if (!is_simple || (wishes_.waits_for_reads && view_.newest_durable_read > memory_.order().durable())) {
        return false;
    }
    memory_.gate().leave(place_);
    depth_ = 0;
    attempts_ = 0;
    return true;
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
    return wishes_.stores_plainly ? commit_plain() : finish();
}

void Transaction::announce() noexcept { memory_.protocol().announce(committing_); }

void Transaction::withdraw() noexcept { memory_.commit_links().withdraw(slot_); }

Outcome Transaction::finish() noexcept
{
    if (writes_.size() == 0 && changed_blocks() == 0) {
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
        announce();
    } else if (!await_reads()) {
        // Before others see what was written: they do not wait for it.
        return give_up(Outcome::failed);
    }
    const Timestamp timestamp = acquire(is_durable);
    if (timestamp == 0 || (is_durable && !protocol.settle(committing_, timestamp))) {
        if (is_durable) {
            protocol.cancel(committing_);
        }
        if (timestamp != 0) {
            protocol.skip(timestamp);
        }
        return give_up(Outcome::conflict);
    }
    publish(timestamp);
    if (!is_durable) {
        protocol.skip(timestamp);
        leave_gate();
        depth_ = 0;
        await_others(timestamp);
        return Outcome::done;
    }
    return commit_record(timestamp);
}

Outcome Transaction::commit_stored(Timestamp timestamp) noexcept
{
    build_record();
    if (record_.empty()) {  // Volatile memory alone was written. A transaction that reads it waits for the same.
        log().cancel();
        withdraw();
        return commit_reads();
    }
    static_cast<void>(memory_.protocol().settle(committing_, timestamp));  // SPHT's own, which knows no conflict.
    return commit_record(timestamp);
}

Outcome Transaction::commit_record(Timestamp timestamp) noexcept
{
    memory_.store_check().close_opened();
    memory_.protocol().log(committing_, timestamp);
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
            release_block_of_engine(*memory_.heap(), blocks[i]);
        }
    }
    calls_heap_ = false;
}

void Transaction::abort() noexcept
{
    release();
    withdraw();
    leave_gate();
    depth_ = 0;
    free_blocks(allocated_, allocated_count_);
    forget();
}
}  // namespace stillpoint::spht
