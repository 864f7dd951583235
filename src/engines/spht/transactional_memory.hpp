#pragma once
// TransactionalMemory: what the transactions of a pool share, and the way in which they become durable.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/result.hpp"
#include "engines/spht/executors/executors.hpp"
#include "engines/spht/executors/norec.hpp"
#include "engines/spht/executors/simulated_tm.hpp"
#include "engines/spht/executors/version_locks.hpp"
#include "engines/spht/plain_stores.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/serial_gate.hpp"
#include "engines/spht/store_check.hpp"
#include "engines/spht/transaction.hpp"
#include "logs/chunk_space.hpp"
#include "logs/commit_clock.hpp"
#include "logs/commit_links.hpp"
#include "logs/commit_order.hpp"
#include "logs/early_pages.hpp"
#include "logs/group_commit.hpp"
#include "logs/replayed_logs.hpp"
#include "logs/shared_logs.hpp"
#include "os/futex.hpp"
#include "runtime/engine.hpp"
#include "runtime/shadow.hpp"

namespace stillpoint::spht {

class TransactionalMemory final : public logs::ReplayedLogs {
public:
    /// Threads that may be inside transactions at a time.
    static constexpr std::uint32_t threads_max = logs::CommitOrder::slots_max - 1;

    struct Parts {
        Pool* pool;
        os::FutexLock* medium_lock;
        const Shadow* shadow;
        std::uint64_t image_bytes_max;
        std::optional<logs::LinkDirection> linking;
        bool spares_markers;
        Visibility visibility;
        Executor executor;
        std::uint64_t executor_seed;
        const ProtocolRow* protocol;
        InPlace* in_place;
        /// A replay is due, or threads wait for one. Any thread.
        void (*request_replay)(void* engine) noexcept;
        /// CommitProtocol::apply() has something to do. Any thread.
        void (*wake_applier)(void* engine) noexcept;
        /// Returns when every page of the image is in memory.
        void (*finish_loading)(void* engine) noexcept;
        /// Nothing becomes durable any more.
        void (*give_up)(void* engine, const Failure& failure) noexcept;
        void* engine;
    };

    TransactionalMemory() = default;
    TransactionalMemory(const TransactionalMemory&) = delete;
    TransactionalMemory& operator=(const TransactionalMemory&) = delete;
    ~TransactionalMemory() override;

    /// Errors: no_memory.
    [[nodiscard]] Result<void> prepare(const Parts& parts);
    /// Transactions may begin; their timestamps are later than `after`. `group`: the newest that counts, on block media.
    [[nodiscard]] Result<void> start(Timestamp after, const logs::GroupRecord& group);
    void stop() noexcept;
    void detach_after_fork() noexcept;

    /// The calling thread's; made at its first use. nullptr: no memory, or too many threads: failure_of_own().
    [[nodiscard]] Transaction* own() noexcept;
    /// The calling thread's, if it has one.
    [[nodiscard]] Transaction* own_if_any() const noexcept;
    void thread_ends() noexcept;
    [[nodiscard]] const Failure& failure() const noexcept { return failure_; }
    [[nodiscard]] bool has_failed() const noexcept { return has_failed_.load(std::memory_order_acquire); }
    void fail_for_good(const Failure& failure) noexcept override;

    // -- For transactions --------------------------------------------------------------------
    [[nodiscard]] VersionLocks& locks() noexcept { return locks_; }
    [[nodiscard]] NorecClock& norec_clock() noexcept { return norec_clock_; }
    [[nodiscard]] SimulatedMachine& simulated_machine() noexcept { return simulated_machine_; }
    [[nodiscard]] logs::CommitClock& clock() noexcept { return clock_; }
    [[nodiscard]] CommitProtocol& protocol() noexcept { return *protocol_; }
    [[nodiscard]] logs::CommitOrder& order() noexcept { return order_; }
    [[nodiscard]] logs::CommitLinks& commit_links() noexcept { return links_; }
    [[nodiscard]] SerialGate& gate() noexcept { return gate_; }
    [[nodiscard]] PlainStores& plain_stores() noexcept { return plain_stores_; }
    /// The calling thread's transaction runs alone: from here on plain stores into durable memory belong to it. Errors: unsupported;
    /// no_memory.
    [[nodiscard]] Result<void> find_plain_stores()
    {
        parts_.finish_loading(parts_.engine);
        store_check_.allow();
        return plain_stores_.arm(image(), {mirrored_.data(), mirrored_count_});
    }
    [[nodiscard]] StoreCheck& store_check() noexcept { return store_check_; }
    [[nodiscard]] bool verifies_stores() const noexcept { return store_check_.is_on(); }
    /// As far as it is accessible.
    [[nodiscard]] std::span<const std::byte> image() const noexcept { return {parts_.shadow->base(), parts_.shadow->bytes()}; }
    [[nodiscard]] logs::ChunkSpace& space() noexcept override { return space_; }
    [[nodiscard]] Heap* heap() const noexcept;
    /// Where the bytes at `address` lie in the image; no_offset: they are not durable.
    [[nodiscard]] std::uint64_t offset_of(const void* address) const noexcept
    {
        const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - image_base_);
        return offset < parts_.image_bytes_max ? offset : mirrored_offset_of(address);
    }
    static constexpr std::uint64_t no_offset = UINT64_MAX;
    /// Makes room in `log`; waits for the replayer where there is none. Errors: transaction_too_large; why the pool has failed.
    [[nodiscard]] Result<void> make_room(logs::RedoLog& log, std::uint64_t words) noexcept;
    /// The record is appended: returns when it may be called persistent. False: the medium has lost something.
    [[nodiscard]] bool persist_log() noexcept;
    /// A step of the protocol has failed: why nothing becomes durable any more.
    [[nodiscard]] const Failure& failure_to_persist() noexcept;
    /// Returns when the transaction of that timestamp, which another thread has committed, is durable. Errors: why not.
    [[nodiscard]] Result<void> await(Timestamp timestamp) noexcept;

    // -- For protocols ----------------------------------------------------------------------------
    /// The slot of the library's own stores.
    static constexpr std::uint32_t stores_slot = 0;
    /// Option `markers`: transactions that depend on nothing that a crash may lose move no marker. Links need every transaction's.
    [[nodiscard]] bool spares_markers() const noexcept { return parts_.spares_markers && !links_.direction(); }
    [[nodiscard]] Visibility visibility() const noexcept { return parts_.visibility; }
    [[nodiscard]] Medium& medium() noexcept { return *medium_; }
    /// The place of the pool's one marker in the file.
    [[nodiscard]] std::uint64_t marker_offset() const noexcept;
    /// Block media: returns when a group has what is up to `timestamp`. False: nothing becomes durable any more.
    [[nodiscard]] bool await_group(Timestamp timestamp) noexcept;
    void wake_applier() noexcept { parts_.wake_applier(parts_.engine); }
    /// Errors: transaction_too_large.
    [[nodiscard]] Result<void> check_size(std::uint64_t words) const noexcept;

    /// [begin, + size_bytes) of durable memory is about to be free, though no transaction frees it: a thread that still finds a way there
    /// meets a conflict.
    void outdate(const void* begin, std::uint64_t size_bytes) noexcept
    {
        locks_.outdate(reinterpret_cast<std::uintptr_t>(begin), size_bytes, clock_.now());
    }

    // -- The library's own stores ---------------------------------------------------------------
    /// The calling thread is about to do what waits for other threads: if it is in a transaction in hardware, that aborts.
    void step_aside() noexcept;
    /// The bytes [address, + size) of the image have changed: a transaction of their own. Not waited for.
    void log_store(const void* address, std::size_t size) noexcept;
    /// Likewise several ranges, as one. Returns when they are durable. Errors: as await().
    [[nodiscard]] Result<void> log_stores(std::span<const std::span<const std::byte>> ranges) noexcept;
    /// Returns when everything that has happened so far is durable. Errors: as await().
    [[nodiscard]] Result<void> seal() noexcept;
    /// Likewise, for the replayer, which cannot wait for room that it makes itself. False: there is none, or a thread that stores for the
    /// library waits for some.
    [[nodiscard]] Result<bool> try_seal() noexcept override;

    /// The pages of the image that were stored to since prepare(): no log has them. Some come twice.
    [[nodiscard]] std::span<const std::uint32_t> early_pages() const noexcept override { return early_pages_.pages(); }

    // -- For the replayer -------------------------------------------------------------------------
    /// The logs in use. The array may grow meanwhile.
    [[nodiscard]] std::uint32_t log_count() const noexcept override
    {
        return shared_logs_.logs_of(thread_count_.load(std::memory_order_acquire)) + 1;
    }
    [[nodiscard]] logs::RedoLog& log(std::uint32_t number) noexcept override;
    /// Which log the thread with this slot appends to: a shared one, or `own`.
    [[nodiscard]] logs::RedoLog& log_of(std::uint64_t slot_number, logs::RedoLog& own) noexcept
    {
        return shared_logs_.log_of(slot_number - 1, own);
    }
    [[nodiscard]] logs::GroupRecord replayable() noexcept override;
    [[nodiscard]] bool groups_count_records() const noexcept override { return !is_byte_addressable(); }
    [[nodiscard]] logs::CommitLinks* links() noexcept override { return links_.direction() ? &links_ : nullptr; }
    void note_linked(std::uint64_t records) noexcept override;
    void note_missing_link() noexcept override;
    [[nodiscard]] bool before_turn() noexcept override { return protocol_->apply(*parts_.in_place); }
    [[nodiscard]] bool is_byte_addressable() const noexcept { return medium_->byte_addressable(); }

    void add_mirrored(const MirroredRange& range) noexcept;
    static constexpr std::size_t mirrored_max = 64;

private:
    [[nodiscard]] std::uint64_t mirrored_offset_of(const void* address) const noexcept;
    [[nodiscard]] Transaction* make_own() noexcept;
    [[nodiscard]] Result<void> prepare_shared_logs() noexcept;
    [[nodiscard]] Result<bool> count_logged() noexcept;
    /// system_record_, under its lock. 0: there is nothing, or the pool has failed.
    [[nodiscard]] Timestamp append_system_record() noexcept;
    /// Returns when the library's stores of that timestamp are durable. Errors: as await().
    [[nodiscard]] Result<void> finish_stores(Timestamp timestamp) noexcept;

    Parts parts_{};
    const std::byte* image_base_ = nullptr;
    std::uint64_t serial_ = 0;  ///< of no other in this process
    Medium* medium_ = nullptr;
    logs::CommitClock clock_;
    logs::CommitOrder order_;
    logs::CommitLinks links_;
    SerialGate gate_;
    VersionLocks locks_;
    SimulatedMachine simulated_machine_;
    NorecClock norec_clock_;
    StoreCheck store_check_;
    PlainStores plain_stores_;
    logs::ChunkSpace space_;
    logs::GroupCommit group_;
    std::unique_ptr<CommitProtocol> protocol_;
    bool is_running_ = false;

    // Stores of the library: the first slot and log.
    os::FutexLock system_lock_;
    logs::RedoLog system_log_;
    logs::RecordBuilder system_record_;
    logs::LinkSearch system_search_;
    std::optional<Committing> system_commit_;
    logs::EarlyPages early_pages_;  ///< under system_lock_

    logs::SharedLogs shared_logs_;  ///< block media

    os::FutexLock threads_lock_;
    os::ReservedArray<Transaction*> threads_;
    std::atomic<std::uint32_t> thread_count_{0};
    os::ReservedArray<std::uint32_t> free_threads_;  ///< numbers of those whose threads have ended
    std::uint32_t free_thread_count_ = 0;

    std::array<MirroredRange, mirrored_max> mirrored_{};
    std::size_t mirrored_count_ = 0;

    std::atomic<bool> has_failed_{false};
    os::FutexLock failure_lock_;
    Failure failure_{};
};

}  // namespace stillpoint::spht
