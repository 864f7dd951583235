#pragma once
// OperationLog: the semantic log of all objects of a pool: begin, log, commit [Pronto §5.1.2, §5.2.1]. How an object comes to be
// and how it is recovered: object_table.hpp.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "engines/pronto/group_commit.hpp"
#include "engines/pronto/live_object.hpp"
#include "engines/pronto/log_space.hpp"
#include "engines/pronto/object_table.hpp"
#include "engines/pronto/siblings.hpp"
#include "engines/pronto/snapshot_links.hpp"
#include "engines/pronto/thread_log.hpp"
#include "media/medium.hpp"
#include "stillpoint/pronto.h"

namespace stillpoint {
struct Session;
}

namespace stillpoint::pronto {

/// Which call of an operation waits until it is durable.
enum class WaitsUntilDurable : std::uint8_t { commit, end, none };

class OperationLog {
public:
    struct Settings {
        Siblings::Use siblings;
        bool verify_replay;
        bool accept_damaged_log;
        bool check_commit_order;
    };

    OperationLog(const SnapshotLinks& links, const Settings& settings);
    OperationLog(const OperationLog&) = delete;
    OperationLog& operator=(const OperationLog&) = delete;
    ~OperationLog();

    /// Reads what the logs have: before the program's threads run. Writes nothing. Errors: pool_corrupt, io, no_memory.
    [[nodiscard]] Result<void> recover(const Pool& pool);
    /// The pool may be written from now on.
    [[nodiscard]] Result<void> run();
    void stop() noexcept;
    void detach_after_fork() noexcept;
    void add_segment(const Segment& segment) noexcept;

    /// In a stop, before the image is captured: the image is told which operations it has.
    void before_capture() noexcept { objects_.before_capture(); }
    /// The snapshot that before_capture() came before is durable.
    void snapshot_durable() noexcept;
    void note_idle() noexcept { space_.note_idle(); }

    // The functions mean what those of the same name in stillpoint/pronto.h mean. `flags` and errors of object(): sp_pronto_object.
    [[nodiscard]] Result<void*> object(Session& session, const sp_pronto_type& type, const char* name, unsigned flags,
                                       const void* arguments, std::size_t bytes);
    [[nodiscard]] Result<void> delete_object(Session& session, const char* name);
    [[nodiscard]] bool is_object(const void* object) const noexcept { return objects_.find(object) != nullptr; }
    [[nodiscard]] Result<void*> begin(sp_pronto_operation& operation, void* object, std::uint32_t method, std::size_t bytes);
    void start_logging(sp_pronto_operation& operation) noexcept;
    [[nodiscard]] Result<void> commit(sp_pronto_operation& operation, WaitsUntilDurable waits);
    [[nodiscard]] Result<void> wait(const sp_pronto_ticket& ticket, std::int64_t timeout_ms);
    [[nodiscard]] Result<void> end(sp_pronto_operation& operation, bool by_exception);
    [[nodiscard]] Result<void> wait_read(const void* object);
    /// The thread's group has ended: what it has committed is durable on return, or with its ticket on block media.
    [[nodiscard]] Result<void> end_group(ThreadLog& thread);
    [[nodiscard]] Result<void> numbers(const void* object, std::uint64_t* committed, std::uint64_t* durable);

private:
    [[nodiscard]] Result<void*> begin_unlogged(Operation& operation, ThreadLog& thread, std::uint64_t bytes);
    [[nodiscard]] Result<void> check_usable(const LiveObject& object, std::uint32_t method) const;
    [[nodiscard]] Result<void> check_medium() const noexcept;
    /// Enters the FASE of the operation with room for it in the log.
    [[nodiscard]] Result<void> enter_with_room(Operation& operation);
    [[nodiscard]] bool take_room(Operation& operation);
    [[nodiscard]] bool take_from_piece(Operation& operation, std::uint32_t bytes);
    [[nodiscard]] bool take_part(LiveObject& object, std::uint64_t argument_begin, std::uint64_t argument_bytes, EntryPlace& part);
    [[nodiscard]] bool start_chunk(LiveObject& object);
    /// Whether the thread's entries share a fence.
    [[nodiscard]] bool is_grouped(const ThreadLog& thread) const noexcept { return thread.group.depth != 0 && has_groups_; }
    void leave_fase(Operation& operation) noexcept;
    static void end_verifying(Operation& operation) noexcept;
    [[nodiscard]] static std::uint64_t known_durable(LiveObject& object, const ThreadLog& thread, bool is_first) noexcept;
    [[nodiscard]] Result<void> commit_lines(Operation& operation);
    /// Takes the operation's commit number. Returns the flags of its entries.
    [[nodiscard]] std::uint8_t take_number(Operation& operation) noexcept;
    void store_part(Operation& operation, const EntryPlace& part, std::uint32_t part_number, std::uint64_t durable,
                    std::uint8_t flags) noexcept;
    void note_dirty(LiveObject& object, ChunkIndex chunk, std::uint32_t begin, std::uint32_t end) noexcept;
    /// Returns its turn in the group commit.
    std::uint64_t commit_to_mirror(Operation& operation);
    void mirror_part(Operation& operation, const EntryPlace& part, std::uint32_t part_number, std::uint64_t durable);
    [[nodiscard]] Result<void> finish_commit(Operation& operation, WaitsUntilDurable waits);
    [[nodiscard]] std::uint32_t part_count(const Operation& operation) const noexcept;
    void refuse(LiveObject& object, const Operation& operation) noexcept;

    SnapshotLinks links_;
    Settings settings_;
    Medium* medium_;
    const bool byte_addressable_;  ///< byte-addressable: entries are stored where they become durable
    const bool has_groups_;  ///< the pool's layout has entries that rely on the one before them
    LogSpace space_;
    GroupCommit group_;
    Siblings siblings_;
    ObjectTable objects_;
    std::atomic<bool> stopped_{false};
};

}  // namespace stillpoint::pronto
