#pragma once
// Transaction: what one thread does between _ITM_beginTransaction and _ITM_commitTransaction.
//
// It runs in one of three ways:
//   buffered   a transaction of the engine: reads and writes go through it;
//   alone      an irrevocable transaction of the engine: memory is read and written in place, because code that the compiler has not
//              instrumented may run between two accesses; the engine finds what was written;
//   volatile   no pool is open: memory is written in place, under one lock for all threads.
// In the last two the undo log rolls memory back.
//
// Threads: its own.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "itm/abi.hpp"
#include "itm/exception_objects.hpp"
#include "itm/private_blocks.hpp"
#include "itm/registers.hpp"
#include "itm/undo_log.hpp"
#include "stillpoint/spht.h"

namespace stillpoint::itm {

class Transaction {
public:
    using Release = void (*)(void* block);
    using UserAction = void (*)(void* argument);

    /// The calling thread's; made at its first use.
    [[nodiscard]] static Transaction& own();
    /// The calling thread's, which has one. Inside transactions only.
    [[nodiscard]] static Transaction& running() noexcept { return *own_; }
    /// nullptr: the thread is in no transaction.
    [[nodiscard]] static Transaction* running_if_any() noexcept { return own_ != nullptr && own_->depth_ != 0 ? own_ : nullptr; }

    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    [[nodiscard]] std::uint32_t begin(std::uint32_t properties, const Registers& registers);
    /// `exception`: it leaves the transaction; nullptr: none does.
    void commit(void* exception);
    [[noreturn]] void abort(std::uint32_t reason);
    /// An exception leaves the transaction, and is not in a handler of it. Rolls back and ends the transaction, but for the exception and
    /// the blocks that it may point to: those that the transaction has allocated and not freed stay allocated. False: nothing was done,
    /// since an irrevocable transaction cannot be rolled back.
    [[nodiscard]] bool roll_back_but_exception();
    /// Why the last transaction was not committed: SP_E_ABORTED if it was cancelled.
    [[nodiscard]] int ended_by() const noexcept { return ended_by_; }
    /// Starts again, alone, where it cannot be so at once.
    void become_irrevocable();
    [[nodiscard]] HowExecuting how_executing() const noexcept { return is_irrevocable_ ? irrevocable : retryable; }
    [[nodiscard]] std::uint32_t id() const noexcept { return id_; }

    // -- Memory ----------------------------------------------------------------------------------
    void read(const void* place, void* value, std::size_t bytes)
    {
        if (is_direct_ || is_on_stack(place)) {
            std::memcpy(value, place, bytes);
        } else if (sp_spht_read(handle_, place, value, bytes) != SP_OK) [[unlikely]] {
            meet_conflict();
        }
    }
    void write(void* place, const void* value, std::size_t bytes)
    {
        if (is_on_stack(place)) {
            std::memcpy(place, value, bytes);
        } else if (is_plain_) [[likely]] {
            if (sp_spht_write(handle_, place, value, bytes) != SP_OK) [[unlikely]] {
                meet_conflict();
            }
        } else {
            write_and_keep(place, value, bytes);
        }
    }
    /// A scalar: it lies inside an aligned word, mostly.
    template <class T>
    [[nodiscard]] T load(const T* place)
    {
        T value;
        const auto address = reinterpret_cast<std::uintptr_t>(place);
        if (address % sizeof(std::uint64_t) + sizeof(T) > sizeof(std::uint64_t) || is_direct_ || is_on_stack(place)) {
            read(place, &value, sizeof value);
            return value;
        }
        std::uint64_t word = 0;
        if (sp_spht_read_word(handle_, reinterpret_cast<const std::uint64_t*>(address & ~std::uintptr_t{7}), &word) != SP_OK) [[unlikely]] {
            meet_conflict();
        }
        word >>= address % sizeof(std::uint64_t) * 8;
        std::memcpy(&value, &word, sizeof value);
        return value;
    }
    template <class T>
    void store(T* place, T value)
    {
        const auto address = reinterpret_cast<std::uintptr_t>(place);
        if (address % sizeof(std::uint64_t) + sizeof(T) > sizeof(std::uint64_t) || !is_plain_ || is_on_stack(place)) {
            write(place, &value, sizeof value);
            return;
        }
        std::uint64_t word = 0;
        std::memcpy(&word, &value, sizeof value);
        const unsigned shift = static_cast<unsigned>(address % sizeof(std::uint64_t)) * 8;
        constexpr std::uint64_t ones = ~std::uint64_t{0} >> (64 - 8 * sizeof(T));
        if (sp_spht_write_word(handle_, reinterpret_cast<std::uint64_t*>(address & ~std::uintptr_t{7}), word << shift, ones << shift) !=
            SP_OK) [[unlikely]] {
            meet_conflict();
        }
    }
    /// The program is about to write memory of its own in place.
    void keep_own(void* place, std::size_t bytes);

    // -- Blocks, exceptions, actions -----------------------------------------------------------------
    /// `release` frees it if the transaction is rolled back.
    void note_allocated(void* block, std::size_t bytes, Release release);
    /// At the commit.
    void free_later(void* block, Release release) { freed_.push_back({block, release}); }
    [[nodiscard]] void* allocate_durable(std::size_t bytes, std::size_t alignment_bytes);
    void free_durable(void* block);
    [[nodiscard]] void* allocate_exception(std::size_t bytes);
    [[nodiscard]] ExceptionObjects& exceptions() noexcept { return exceptions_; }
    void add_commit_action(UserAction call, void* argument) { commit_actions_.push_back({call, argument}); }
    void add_undo_action(UserAction call, void* argument) { undo_actions_.push_back({call, argument}); }

private:
    struct Block {
        void* block;
        Release release;
    };
    struct ActionRecord {
        UserAction call;
        void* argument;
    };
    /// The beginning of a nested transaction that can be cancelled alone.
    struct Checkpoint {
        Registers start;
        std::uint32_t depth;  ///< outside of it
        std::uint32_t id;
        std::size_t undo, allocated, freed, durable_allocated, durable_freed, commit_actions, undo_actions;
    };

    Transaction() = default;

    /// In a frame of a function that the transaction has called: nothing reads it after a rollback.
    [[nodiscard]] __attribute__((always_inline)) bool is_on_stack(const void* place) const noexcept
    {
        const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        return reinterpret_cast<std::uintptr_t>(place) - here < stack_ - here;
    }

    void start_attempt();
    [[nodiscard]] bool begin_in_engine();
    [[noreturn]] void start_again();
    [[nodiscard]] std::uint32_t chosen_code() const noexcept;
    [[nodiscard]] std::uint32_t begin_nested(std::uint32_t properties, const Registers& registers);
    void set_ways() noexcept;
    void write_and_keep(void* place, const void* value, std::size_t bytes);
    [[noreturn]] void meet_conflict(void* exception = nullptr);
    [[noreturn]] void retry_otherwise();
    void commit_in_engine(void* exception);
    void end_committed();
    void restore(std::size_t undo_size, std::uint64_t stack);
    [[noreturn]] void end_refused(int code, void* exception);
    void roll_back(void* exception = nullptr);
    [[noreturn]] void cancel_nested();

    static thread_local Transaction* own_ [[gnu::tls_model("initial-exec")]];
    friend struct OwnTransaction;

    sp_spht_transaction* handle_ = nullptr;  ///< nullptr: volatile
    std::uint64_t stack_ = 0;  ///< frames below are those of functions that the innermost checkpoint has called
    bool is_direct_ = false;  ///< memory is read and written in place
    bool is_plain_ = false;  ///< every write goes to the engine, and nothing is kept for a checkpoint
    bool is_irrevocable_ = false;
    bool keeps_private_ = false;  ///< a rollback leaves the transaction's blocks and exceptions as they are
    int ended_by_ = 0;
    bool wants_alone_ = false;  ///< of the next attempt
    bool wants_writes_ = false;  ///< though the compiler has said that it only reads
    std::uint32_t depth_ = 0;
    std::uint32_t properties_ = 0;
    std::uint32_t id_ = no_transaction_id;
    Registers start_{};
    std::uint64_t lowest_stack_ = 0;  ///< of a checkpoint since the beginning
    UndoLog undo_;
    std::vector<Checkpoint> checkpoints_;
    PrivateBlocks private_;
    ExceptionObjects exceptions_;
    std::vector<Block> allocated_;
    std::vector<Block> freed_;
    std::vector<void*> durable_allocated_;
    std::vector<void*> durable_freed_;
    std::vector<ActionRecord> commit_actions_;
    std::vector<ActionRecord> undo_actions_;
};

}  // namespace stillpoint::itm
