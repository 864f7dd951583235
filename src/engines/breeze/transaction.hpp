#pragma once
// A transaction, and the log that it has [Breeze, thesis §3.1.2, §3.2.3].

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "engines/breeze/pool_parts.hpp"
#include "engines/breeze/reserved_list.hpp"
#include "engines/breeze/undo_log.hpp"

namespace stillpoint::breeze {

/// Where the program logs or allocates, for messages.
struct CodePlace {
    const void* code = nullptr;
    const char* file = nullptr;  ///< nullptr: unknown, `code` may be known
    int line = 0;
};

/// Threads: the one that has begun it. Offsets are those of blocks, i.e. of headers.
class Transaction {
public:
    /// Errors: no_memory.
    [[nodiscard]] Result<void> prepare(PoolParts& pool, unsigned number);
    [[nodiscard]] UndoLog& log() noexcept { return log_; }

    void begin() noexcept;
    /// Becomes durable, or is rolled back and an error returned. Without `waits` it is durable after PoolMemory::wait_durable(), and never
    /// later than transactions that begin after it.
    [[nodiscard]] Result<void> commit(bool waits = true);
    void roll_back() noexcept;
    /// The commit fails with this.
    void refuse(const Failure& failure) noexcept;

    /// Before stores to these bytes of the image. `waits`: the old bytes, and those of earlier calls, are durable on return.
    /// Errors: those of nvm_log.
    [[nodiscard]] Result<void> log_range(std::uint64_t offset, std::uint64_t size, CodePlace place, bool waits);
    /// Errors: object_type, invalid_argument, pool_full.
    [[nodiscard]] Result<std::byte*> allocate(std::uint32_t type, std::uint64_t size, CodePlace place);
    /// Errors: invalid_argument, object_refused, transaction_too_large.
    [[nodiscard]] Result<void> free_block(std::uint64_t block);
    /// `block` 0: none. Errors: invalid_argument, transaction_too_large.
    [[nodiscard]] Result<void> set_root(std::uint64_t block);

    /// Counts of this log's transactions since the opening. Read by any thread.
    struct Figures {
        std::atomic<std::uint64_t> committed{0};
        std::atomic<std::uint64_t> rolled_back{0};
        std::atomic<std::uint64_t> objects_made{0};
    };
    [[nodiscard]] const Figures& figures() const noexcept { return figures_; }

private:
    struct Site {
        std::uint64_t offset;
        std::uint64_t size;
        CodePlace place;
    };
    [[nodiscard]] bool owns(std::uint64_t block) const noexcept { return load_word(pool_->memory.object(block).owner) == owner_; }
    [[nodiscard]] bool is_freed(std::uint64_t block) const noexcept;
    [[nodiscard]] std::uint64_t next_version() noexcept;
    [[nodiscard]] Result<void> too_large();
    /// How new pointers are checked, which must lead to objects of this pool.
    enum class Check : std::uint8_t {
        none,
        place,  ///< that they lead to where objects are; settle_changes() does the rest. Pointers that were moved cancel out
        object,  ///< each, with its object's header
    };
    /// Algorithm 2: the changed pointers, into changes_.
    [[nodiscard]] Result<void> find_changes(Check check);
    [[nodiscard]] Result<void> find_changes_in(const LoggedRange& range, Check check);
    [[nodiscard]] Result<void> find_changes_of_tagged(std::uint64_t block, Check check);
    [[nodiscard]] Result<void> add_all_pointers(std::uint64_t block, Check check);
    [[nodiscard]] Result<void> add_change(std::uint64_t block, std::uint64_t place, const PointerRun& run, std::uint64_t before,
                                          std::uint64_t after, Check check);
    /// The pointer leads to the block's bytes, not to its header.
    [[nodiscard]] bool leads_into(std::uint64_t pointer, std::uint64_t block) const noexcept
    {
        return block != 0 && pointer - pool_->base() >= block + object_header_bytes;
    }
    /// An object that this transaction, or a committed one, has made.
    [[nodiscard]] bool is_object(std::uint64_t block) const noexcept { return pool_->allocated(block) && owner_has_finished(block); }
    [[nodiscard]] Result<void> check_target(std::uint64_t block, std::uint64_t place, const PointerRun& run, std::uint64_t pointer);
    /// The changes that a commit makes, checked, told to a collection, and settled.
    [[nodiscard]] Result<void> find_and_settle_changes();
    [[nodiscard]] bool owner_has_finished(std::uint64_t block) const noexcept;
    /// A collection runs: what pointers led to, and lead to now, is reachable.
    void reach_changed() noexcept;
    void write_back_everything() noexcept;
    /// Counts pointers to objects that the transaction has allocated in their headers, and leaves in changes_ what others gain and lose.
    /// False: one that gains references is not an object; nothing was counted. Those that gain none had some before the transaction.
    [[nodiscard]] bool settle_changes() noexcept;
    void end() noexcept;
    /// One thread at a time has the log.
    static void add(std::atomic<std::uint64_t>& figure, std::uint64_t more) noexcept
    {
        figure.store(figure.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }

    alignas(2 * cache_line_bytes) PoolParts* pool_ = nullptr;  // Another thread has the next transaction.
    unsigned number_ = 0;
    os::ReservedSpace space_;  ///< of the log and the lists
    std::uint64_t id_ = 0;
    std::uint64_t owner_ = 0;
    UndoLog log_;
    BlockCache cache_{};
    ReservedList<std::uint64_t> allocated_;
    ReservedList<std::uint64_t> freed_;  ///< also those that it has allocated
    ReservedList<std::uint64_t> tagged_;  ///< objects whose pointers depend on tags
    struct Difference {
        std::uint64_t block;
        std::int64_t references;
    };
    ReservedList<PointerChange> changes_;
    /// The words that the last of changes_ was made from; it may go on, with the next element of an array whose elements were moved.
    struct {
        bool goes_on = false;
        std::uint64_t before = 0;
        std::uint64_t after = 0;
    } last_;
    ReservedList<Difference> differences_;
    ReservedList<Site> sites_;
    bool refused_ = false;
    Failure refusal_;
    Figures figures_;
};

}  // namespace stillpoint::breeze
