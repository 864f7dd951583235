#pragma once
// Transaction: what one thread does between begin and commit, and the state that it keeps from one transaction to the next. README.md
// says which line of the paper is where.
//
// How a transaction is kept apart from others is its executor's business: a class of executors/ that implements the protected part. What
// becomes durable of it, and when, is the same for all. All transactions of a pool have one kind of executor.
//
// Threads: its own.

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/result.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/serial_gate.hpp"
#include "engines/spht/write_set.hpp"
#include "heap/heap.hpp"
#include "logs/commit_links.hpp"
#include "logs/commit_order.hpp"
#include "logs/record_builder.hpp"
#include "logs/redo_log.hpp"
#include "os/reserved_array.hpp"
#include "stillpoint/spht.h"
#include "stillpoint/spht_read_view.hpp"

namespace stillpoint::spht {

using logs::Timestamp;

class TransactionalMemory;

/// How an attempt ended.
enum class Outcome : std::uint8_t {
    done,
    conflict,  ///< rolled back: another transaction was in the way; run the body again
    failed,    ///< rolled back, or not known to be durable: failure() says why
};

/// The first base of a transaction: what the calling program sees of it.
struct ReadState {
    read_view view_{};
};

class Transaction : protected ReadState {
public:
    using Action = void (*)(void* argument);

    /// `number`: of the slot.
    Transaction(TransactionalMemory& memory, logs::CommitOrder::Slot& slot, SerialGate::Place& place, std::uint64_t number) noexcept;
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    virtual ~Transaction() = default;
    /// Errors: no_memory.
    [[nodiscard]] virtual Result<void> reserve();

    [[nodiscard]] sp_spht_transaction* handle() noexcept { return reinterpret_cast<sp_spht_transaction*>(&view_); }
    [[nodiscard]] static Transaction& of(sp_spht_transaction* handle) noexcept
    {
        return static_cast<Transaction&>(*reinterpret_cast<ReadState*>(handle));
    }

    struct Wishes {
        bool read_only = false;
        bool alone = false;           ///< irrevocable: no other transaction runs, so this one meets no conflict
        bool stores_plainly = false;  ///< with `alone`: other code stores into durable memory, and those stores are found
        bool privatizes = false;      ///< the commit waits for transactions that began before it
        bool waits_for_reads = true;  ///< a read-only one returns when what it read is durable
    };
    void begin(const Wishes& wishes) noexcept;
    /// Inside one already: it goes on, and the matching commit() only counts [flat nesting].
    void begin_nested() noexcept { ++depth_; }
    [[nodiscard]] bool is_running() const noexcept { return depth_ != 0; }
    [[nodiscard]] bool is_nested() const noexcept { return depth_ > 1; }
    [[nodiscard]] bool is_read_only() const noexcept { return wishes_.read_only; }
    /// Plain stores of other code into durable memory are a part of the transaction.
    [[nodiscard]] bool finds_plain_stores() const noexcept { return wishes_.stores_plainly; }
    /// After an outcome `failed`: nothing of it has happened.
    [[nodiscard]] bool was_rolled_back() const noexcept { return was_rolled_back_; }
    void end_nested() noexcept { --depth_; }
    /// A conflict was met: nothing that is read from here on counts, and commit() says so.
    [[nodiscard]] bool is_doomed() const noexcept { return doomed_; }

    /// The aligned word at `word`, as of one moment for all words that the transaction reads. SP_OK or SP_E_CONFLICT: the API passes it on
    /// without another instruction.
    [[nodiscard]] virtual int read(const std::uint64_t* word, std::uint64_t& value) noexcept = 0;
    /// Writes the bytes that `mask` has. False: conflict, or too much; is_doomed() either way.
    [[nodiscard]] virtual bool write(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept;

    /// nullptr: no memory; Heap::last_failure() says why. Rolled back if the transaction is.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) noexcept;
    /// At the commit. False: no live block of the heap begins there.
    [[nodiscard]] bool deallocate(void* block) noexcept;
    /// After the commit, or after it was rolled back for good, in the order in which they were given. False: no memory.
    [[nodiscard]] bool on_commit(Action action, void* argument) noexcept;
    [[nodiscard]] bool on_abort(Action action, void* argument) noexcept;

    /// The short end of one that has only read what is durable. False: commit() it.
    [[nodiscard]] bool try_end_reads() noexcept;
    /// The outermost commit: durable when it returns `done`. The caller runs the actions.
    [[nodiscard]] Outcome commit() noexcept;
    /// Rolls everything back. Actions on abort are the caller's where it does not try again.
    void abort() noexcept;
    /// Calls and forgets the actions of a commit, or of an abort.
    void run_actions(bool committed);
    void drop_actions() noexcept;

    [[nodiscard]] const Failure& failure() const noexcept { return failure_; }
    [[nodiscard]] std::uint32_t attempts() const noexcept { return attempts_; }
    void count_attempt() noexcept { ++attempts_; }
    void forget_attempts() noexcept { attempts_ = 0; }

    // -- For protocols: a commit that has locked nothing yet ------------------------------------------------
    /// The moment as of which it has read, if the protocol compares with it.
    [[nodiscard]] Timestamp began_as_of() const noexcept { return view_.read_before; }
    [[nodiscard]] bool runs_alone() const noexcept { return wishes_.alone; }
    /// The timestamp, while all that it read holds and no other transaction reads or writes what it would write. 0: conflict.
    [[nodiscard]] Timestamp lock_and_validate() noexcept { return acquire(true); }
    void unlock() noexcept { release(); }
    /// The old values of the words that it would write, while their lines are locked.
    void build_undo_record() noexcept;
    [[nodiscard]] logs::RecordBuilder& undo_record() noexcept { return undo_record_; }

    /// A change of the library's own tables, by this thread: `builder()` has it. Ordered with transactions; not waited for.
    [[nodiscard]] logs::RedoLog& log() noexcept { return committing_.log; }
    [[nodiscard]] logs::CommitOrder::Slot& slot() noexcept { return slot_; }
    /// The thread is about to do what waits for other threads, and is not a part of the transaction.
    virtual void step_aside() noexcept {}
    /// The thread is inside a call of the heap for its transaction: states of blocks are logged at the commit.
    [[nodiscard]] bool calls_heap() const noexcept { return calls_heap_; }

protected:
    // -- The executor ------------------------------------------------------------------------------
    /// The body begins: returns when no other transaction runs alone, or with `alone` when no other runs.
    virtual void enter() noexcept = 0;
    /// Between them the thread is in the heap, for this transaction.
    virtual void heap_call_begins() noexcept {}
    virtual void heap_call_ends() noexcept {}
    /// Nothing that was read has changed since.
    [[nodiscard]] virtual bool reads_hold() noexcept = 0;
    /// A commit, unless plain stores belong to it. This one is for executors that store nothing before it, and takes the two steps below.
    [[nodiscard]] virtual Outcome finish() noexcept;
    /// The first step of a commit: what was written, and blocks that are freed, are this transaction's alone until publish() or
    /// release(), and all that was read still holds. Returns the timestamp; 0: conflict.
    [[nodiscard]] virtual Timestamp acquire(bool is_durable) noexcept = 0;
    /// The second step: stores the words, and lets others see them.
    virtual void publish(Timestamp timestamp) noexcept = 0;
    /// In its place: the transaction is rolled back.
    virtual void release() noexcept {}
    /// Later than every transaction whose effects this one has seen or replaces, and than all that others see before publish().
    [[nodiscard]] virtual Timestamp choose_timestamp(bool is_durable) const noexcept = 0;
    /// The newest transaction with a log record that this one may have read from.
    [[nodiscard]] virtual Timestamp newest_to_await() noexcept = 0;
    /// After a commit that has made memory private, or has learned that it is: no other transaction uses it any more.
    virtual void await_others(Timestamp timestamp) noexcept = 0;

    // -- For it ------------------------------------------------------------------------------------
    bool doom() noexcept
    {
        doomed_ = true;
        view_.read_before = 0;
        return false;
    }
    void enter_gate() noexcept;
    /// False: the transaction has not written the word.
    [[nodiscard]] bool may_have_written(const std::uint64_t* word) const noexcept
    {
        return (view_.written & read_view::written_bit(word)) != 0;
    }
    /// nullptr: the transaction has not written the word.
    [[nodiscard]] const WriteSet::Entry* find_written(const std::uint64_t* word) const noexcept
    {
        return may_have_written(word) ? writes_.find(word) : nullptr;
    }
    /// The clock's present, when it is past `earlier`.
    [[nodiscard]] Timestamp timestamp_after(Timestamp earlier, bool is_durable) const noexcept;
    /// In one of the blocks that the transaction has allocated last.
    [[nodiscard]] bool is_fresh(std::uintptr_t address) const noexcept
    {
        return allocated_count_ != 0 &&
               std::any_of(fresh_.begin(), fresh_.end(), [&](const FreshBlock& block) { return address - block.begin < block.bytes; });
    }
    /// From here on later transactions wait for this one, which has room in its log.
    void announce() noexcept;
    void withdraw() noexcept;
    void write_back() noexcept;
    [[nodiscard]] std::uint64_t changed_blocks() const noexcept { return allocated_count_ + freed_count_; }
    /// The end of a transaction that wrote nothing.
    [[nodiscard]] Outcome commit_reads() noexcept;
    /// The end of one whose words are stored, and seen by others: it was announced before, with room in its log.
    [[nodiscard]] Outcome commit_stored(Timestamp timestamp) noexcept;
    [[nodiscard]] Outcome give_up(Outcome outcome) noexcept;

private:
    struct FreshBlock {
        std::uintptr_t begin;
        std::uint64_t bytes;
    };
    static constexpr std::uint64_t fresh_blocks = 4;
    struct ActionRecord {
        Action call;
        void* argument;
        bool on_commit;
    };

    void forget() noexcept;
    void build_record() noexcept;
    [[nodiscard]] Outcome make_room() noexcept;
    [[nodiscard]] bool await_reads() noexcept;
    [[nodiscard]] Outcome commit_plain() noexcept;
    void build_plain_record() noexcept;
    void add_freed() noexcept;
    [[nodiscard]] Outcome commit_record(Timestamp timestamp) noexcept;
    [[nodiscard]] Outcome make_durable(Timestamp timestamp) noexcept;
    void leave_gate() noexcept;
    void free_blocks(const os::ReservedArray<void*>& blocks, std::uint64_t count) noexcept;

protected:
    TransactionalMemory& memory_;
    logs::CommitOrder::Slot& slot_;
    SerialGate::Place& place_;
    bool doomed_ = false;
    bool too_large_ = false;
    Wishes wishes_;
    WriteSet writes_;
    os::ReservedArray<void*> freed_;
    std::uint64_t freed_count_ = 0;
    logs::RecordBuilder record_;
    logs::RedoLog own_log_;  ///< unused where threads share theirs
    logs::LinkSearch search_;
    Committing committing_;

private:
    std::uint32_t depth_ = 0;
    std::uint32_t attempts_ = 0;
    bool calls_heap_ = false;
    bool was_rolled_back_ = false;
    os::ReservedArray<void*> allocated_;
    std::uint64_t allocated_count_ = 0;
    std::array<FreshBlock, fresh_blocks> fresh_{};
    os::ReservedArray<ActionRecord> actions_;
    std::uint64_t action_count_ = 0;
    logs::RecordBuilder undo_record_;
    Failure failure_{};
};

}  // namespace stillpoint::spht
