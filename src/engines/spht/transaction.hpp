#pragma once
// Transaction: what one thread does between begin and commit, and the state that it keeps from one transaction to the next. README.md
// says which line of the paper is where.
//
// Threads: its own.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/result.hpp"
#include "engines/spht/serial_gate.hpp"
#include "engines/spht/version_locks.hpp"
#include "engines/spht/write_set.hpp"
#include "heap/heap.hpp"
#include "logs/commit_links.hpp"
#include "logs/commit_order.hpp"
#include "logs/record_builder.hpp"
#include "logs/redo_log.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::spht {

class TransactionalMemory;

/// How an attempt ended.
enum class Outcome : std::uint8_t {
    done,
    conflict,  ///< rolled back: another transaction was in the way; run the body again
    failed,    ///< rolled back, or not known to be durable: failure() says why
};

class Transaction {
public:
    using Action = void (*)(void* argument);

    Transaction(TransactionalMemory& memory, logs::CommitOrder::Slot& slot, SerialGate::Place& place, std::uint64_t number) noexcept;
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve();

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

    /// The aligned word at `word`, as of one moment for all words that the transaction reads. False: conflict.
    [[nodiscard]] bool read(const std::uint64_t* word, std::uint64_t& value) noexcept;
    /// Writes the bytes that `mask` has. False: conflict, or too much; is_doomed() either way.
    [[nodiscard]] bool write(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept;

    /// nullptr: no memory; Heap::last_failure() says why. Rolled back if the transaction is.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) noexcept;
    /// At the commit. False: no live block of the heap begins there.
    [[nodiscard]] bool deallocate(void* block) noexcept;
    /// After the commit, or after it was rolled back for good, in the order in which they were given. False: no memory.
    [[nodiscard]] bool on_commit(Action action, void* argument) noexcept;
    [[nodiscard]] bool on_abort(Action action, void* argument) noexcept;

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

    /// A change of the library's own tables, by this thread: `builder()` has it. Ordered with transactions; not waited for.
    [[nodiscard]] logs::RedoLog& log() noexcept { return log_; }
    [[nodiscard]] logs::CommitOrder::Slot& slot() noexcept { return slot_; }
    /// The thread is inside a call of the heap for its transaction: states of blocks are logged at the commit.
    [[nodiscard]] bool calls_heap() const noexcept { return calls_heap_; }

private:
    struct LockedLine {
        VersionLocks::Lock* lock;
        std::uint64_t before;
    };
    struct ActionRecord {
        Action call;
        void* argument;
        bool on_commit;
    };

    void forget() noexcept;
    void note_read(Timestamp version) noexcept
    {
        newest_read_ = std::max(newest_read_, std::max(version, Timestamp{1}));
        newest_durable_read_ = VersionLocks::is_of_durable(version) ? std::max(newest_durable_read_, version) : newest_durable_read_;
    }
    bool doom() noexcept
    {
        doomed_ = true;
        return false;
    }
    [[nodiscard]] bool extend() noexcept;
    [[nodiscard]] bool reads_hold(Timestamp read_version) const noexcept;
    void build_record() noexcept;
    [[nodiscard]] Outcome make_room() noexcept;
    [[nodiscard]] bool lock_line(std::uintptr_t address) noexcept;
    [[nodiscard]] bool lock_lines() noexcept;
    void unlock_lines() noexcept;
    [[nodiscard]] Timestamp choose_timestamp(bool is_durable) const noexcept;
    [[nodiscard]] bool await_reads() noexcept;
    void write_back() noexcept;
    void publish(Timestamp timestamp) noexcept;
    [[nodiscard]] Outcome commit_reads() noexcept;
    [[nodiscard]] Outcome commit_plain() noexcept;
    void build_plain_record() noexcept;
    void add_freed() noexcept;
    [[nodiscard]] Outcome make_durable(Timestamp timestamp) noexcept;
    [[nodiscard]] Outcome give_up(Outcome outcome) noexcept;
    void leave_gate() noexcept;
    void await_others(Timestamp timestamp) noexcept;
    void free_blocks(const os::ReservedArray<void*>& blocks, std::uint64_t count) noexcept;
    [[nodiscard]] bool is_own(std::uint64_t lock_word) const noexcept { return lock_word == own_lock_word_; }

    TransactionalMemory& memory_;
    logs::CommitOrder::Slot& slot_;
    SerialGate::Place& place_;
    const std::uint64_t own_lock_word_;

    Timestamp read_version_ = 0;  ///< lines with older versions may be read
    Timestamp newest_read_ = 0;   ///< newest version among them
    Timestamp newest_durable_read_ = 0;  ///< of a transaction that has written durable memory
    std::uint32_t depth_ = 0;
    std::uint32_t attempts_ = 0;
    bool doomed_ = false;
    bool too_large_ = false;
    bool calls_heap_ = false;
    bool was_rolled_back_ = false;
    Wishes wishes_;
    WriteSet writes_;
    os::ReservedArray<VersionLocks::Lock*> reads_;
    std::uint64_t read_count_ = 0;
    os::ReservedArray<LockedLine> locked_;
    std::uint64_t locked_count_ = 0;
    os::ReservedArray<void*> allocated_;
    std::uint64_t allocated_count_ = 0;
    os::ReservedArray<void*> freed_;
    std::uint64_t freed_count_ = 0;
    os::ReservedArray<ActionRecord> actions_;
    std::uint64_t action_count_ = 0;
    logs::RecordBuilder record_;
    logs::RedoLog log_;
    logs::LinkSearch search_;
    Failure failure_{};
};

}  // namespace stillpoint::spht
