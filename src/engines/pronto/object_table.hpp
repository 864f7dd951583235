#pragma once
// ObjectTable: the objects of the open pool: found by name, made, recovered, deleted [Pronto §5.1.2, §5.2.4].

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/result.hpp"
#include "engines/pronto/live_object.hpp"
#include "engines/pronto/log_scan.hpp"
#include "engines/pronto/log_space.hpp"
#include "engines/pronto/snapshot_links.hpp"
#include "engines/pronto/thread_log.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "pool/directory.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint::pronto {

class ObjectTable {
public:
    struct ObjectRequest {
        const sp_pronto_type* type;
        const char* name;
        unsigned flags;
        const void* arguments;
        std::size_t argument_bytes;
    };

    ObjectTable(const SnapshotLinks& links, LogSpace& space, bool verify_replay, bool accept_damaged_log)
        : links_(links), space_(space), verify_replay_(verify_replay), accept_damaged_log_(accept_damaged_log)
    {
    }

    /// Finds the logs in the pool's file; chunks without one are free from now on. Before the program runs. Errors: io, no_memory.
    [[nodiscard]] Result<void> read_logs(const Pool& pool);
    /// sp_pronto_object's and sp_pronto_delete's work.
    [[nodiscard]] Result<void*> open(Session& session, const ObjectRequest& request);
    [[nodiscard]] Result<void> remove(Session& session, const char* name);

    /// The object at that address, or nullptr. Any thread, no lock.
    [[nodiscard]] LiveObject* find(const void* object) const noexcept;
    [[nodiscard]] bool is_twin_of(const void* address, const LiveObject& object) const noexcept;
    /// Option verify_replay: runs the operation again, on the second object, and compares. Errors: not_deterministic.
    [[nodiscard]] Result<void> run_on_twin(Operation& operation);

    /// The object may differ from what its log says: no operation on it, and no snapshot any more.
    void refuse(LiveObject& object, const Failure& reason) noexcept;
    /// Why no snapshot is taken any more; nullptr: they are.
    [[nodiscard]] const Failure* refusal() const noexcept { return has_refusal_.load(std::memory_order_acquire) ? &refusal_ : nullptr; }

    /// In a stop.
    void before_capture() noexcept;
    void release_retired_chunks() noexcept;

private:
    /// At the first call in a process; later ones say again why it failed.
    [[nodiscard]] Result<void> recover_all(Session& session);
    [[nodiscard]] Result<void> recover_found(Session& session);
    /// The logs that a killed process has left are readable, and perhaps not durable: it is made so before anything is told that
    /// relies on it.
    void make_logs_durable() noexcept;
    void hand_out_chunks(bool all_objects_known);
    [[nodiscard]] Result<void> adopt(Session& session, const DirectoryEntry& entry, std::set<std::uint64_t>& identities);
    [[nodiscard]] Result<void> check_record(const Session& session, const DirectoryEntry& entry) const;
    void replay_in_parallel(std::span<LiveObject* const> objects);
    /// From what the image has to the newest durable state. On failure the object keeps its state, and `refusal` says why.
    void recover(LiveObject& object, bool accept_changed_methods);
    [[nodiscard]] Result<void> recover_open(LiveObject& object, bool accept_changed_methods);
    [[nodiscard]] Result<void> replay(LiveObject& object, const ScannedLog& log);
    [[nodiscard]] Result<void> replay_one(LiveObject& object, const LoggedOperation& operation);
    [[nodiscard]] Result<void> write_again(const ScannedLog& log, std::span<const ScannedChunk> chunks);
    [[nodiscard]] Result<void> settle_damage(const LiveObject& object, ScannedLog& log) const;
    /// Gives the object in the image a table with all of the program's methods.
    [[nodiscard]] Result<void> update_method_table(LiveObject& object);
    /// Before operations are logged that an older snapshot and log would not be understood with: new methods, and numbers behind a gap.
    [[nodiscard]] Result<void> make_recovery_durable();

    [[nodiscard]] Result<LiveObject*> create(Session& session, const ObjectRequest& request);
    [[nodiscard]] Result<ObjectRecord*> allocate(Session& session, const sp_pronto_type& type);
    [[nodiscard]] Result<void> construct(LiveObject& object, const ObjectRequest& request);
    void release(Session& session, ObjectRecord& record) noexcept;
    [[nodiscard]] Result<LiveObject*> add_live(ObjectRecord& record, std::string_view name, const sp_pronto_type* type);
    /// For locks in the record's object, and its readers.
    void note_run(ObjectRecord& record) const noexcept;
    [[nodiscard]] LiveObject* live_at(std::uintptr_t record_address) const noexcept;
    [[nodiscard]] std::span<const ScannedChunk> chunks_of(std::uint64_t identity) const;
    [[nodiscard]] Result<void> check_wish(const LiveObject& object, const ObjectRequest& request) const;

    SnapshotLinks links_;
    LogSpace& space_;
    const bool verify_replay_;
    const bool accept_damaged_log_;

    os::FutexLock lock_;  ///< of making, finding and deleting; not of operations
    std::atomic<int> lock_owner_{0};  ///< thread id
    Session* session_ = nullptr;  ///< of the call that holds the lock
    bool recovered_ = false;
    Result<void> recovery_;  ///< what came of it
    std::uint64_t identities_given_ = 0;
    std::vector<ScannedChunk> chunks_;  ///< as found at the start, by object and sequence
    std::deque<LiveObject> objects_;
    static constexpr std::uint64_t slots_max = 1 << 20;
    os::ReservedArray<LiveObject*> slots_;
    std::atomic<std::uint64_t> slot_count_{0};

    os::FutexLock refusal_lock_;
    std::atomic<bool> has_refusal_{false};
    Failure refusal_{};
    std::atomic<bool> snapshot_needed_{false};
    std::atomic<bool> sync_needed_{false};  ///< of what recovery has written again
};

}  // namespace stillpoint::pronto
