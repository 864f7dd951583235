#pragma once
// A medium whose replica, a second one elsewhere, gets every write, sync and growth in the same order. So the replica is at any moment what
// a crash may leave of the medium itself, some syncs ago: every engine recovers from it without knowing.
//
// Invariant: the calls that the replica has had are a prefix of those that this medium has had, and a sync of the replica lies between any
// two that a sync lies between here.

#include <memory>
#include <optional>
#include <string>

#include "media/block_medium.hpp"
#include "media/counter.hpp"
#include "media/replica/replica_record.hpp"
#include "media/replica/replica_stream.hpp"
#include "os/service_thread.hpp"

namespace stillpoint {

struct ReplicaFigures {
    std::uint64_t newest_epoch;  ///< known to be durable in the replica
    std::uint64_t lag_ns;  ///< since when something waits for the replica; 0: nothing does
    std::uint64_t bytes_waiting;
};

struct ReplicaSettings {
    std::string name;  ///< of the replica
    std::uint64_t writer = 0;  ///< this process's number there
    ReplicaLevel level = ReplicaLevel::remote;
    /// ReplicaLevel::local: a sync waits while something older than this is not in the replica.
    std::uint64_t lag_ns_max = 5'000'000'000;
    std::uint64_t buffer_bytes = 256 * mib;  ///< what waits for the replica; a write waits while it is full
    /// Opens the replica again after its connection was lost. Errors: pool_locked: another process has it, or had it meanwhile.
    Result<std::unique_ptr<Medium>> (*reopen)(const ReplicaSettings& settings) = nullptr;
    std::uint64_t reopen_pause_ns = 1'000'000'000;
    std::uint32_t lease_ms = 10'000;
    std::uint32_t cluster_wait_max_ms = 0;  ///< as MediumOptions has it
    /// The newest epoch that is durable here. nullptr: epochs are not followed.
    std::uint64_t (*newest_epoch)(void* context) = nullptr;
    /// Told of the figures now and then, by the thread that gives the replica what it lacks and by those that wait for it.
    void (*tell)(void* context, const ReplicaFigures& figures) = nullptr;
    void* context = nullptr;
    /// Notes in the record which pool the medium has, and its generation. nullptr: tests of media that have no pool.
    Result<void> (*note_pool)(const Medium& medium, ReplicaRecord& record) = nullptr;
};

/// Threads: as Medium; figures() and wait() any.
class ReplicatedMedium final : public BlockMedium {
public:
    /// Both have the same bytes. The pool here has no name yet where `record` is not stored: publish() stores it.
    /// Errors: no_memory.
    [[nodiscard]] static Result<std::unique_ptr<ReplicatedMedium>> make(std::unique_ptr<Medium> local, std::unique_ptr<Medium> remote,
                                                                        ReplicaSettings settings, const ReplicaRecord& record,
                                                                        std::optional<ReplicaRecordFile> record_file);
    ~ReplicatedMedium() override;

    /// The engine has ended: waits until the replica has everything, as long as it takes something in 10 s, and says so where it has not.
    /// No call changes the medium afterwards.
    void finish() noexcept;

    /// Everything that is durable here when this is called is durable in the replica, too. Errors: timed_out; io (it never will be).
    [[nodiscard]] Result<void> wait(std::uint64_t deadline_ns) noexcept { return wait_for(position(), deadline_ns); }
    /// Likewise, in parts: all that was durable here when position() was called.
    [[nodiscard]] std::uint64_t position() const noexcept;
    [[nodiscard]] Result<void> wait_for(std::uint64_t position, std::uint64_t deadline_ns) noexcept;
    [[nodiscard]] ReplicaFigures figures() const noexcept;

    [[nodiscard]] std::string_view path() const noexcept override { return local_->path(); }
    [[nodiscard]] Durability durability() const noexcept override { return local_->durability(); }
    void set_durability(Durability durability) noexcept override { local_->set_durability(durability); }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return local_->size_bytes(); }
    [[nodiscard]] std::string_view mechanism() const noexcept override { return mechanism_; }
    [[nodiscard]] MediumCounters counters() const noexcept override { return local_->counters(); }
    [[nodiscard]] Result<void> resize(std::uint64_t size) override;
    [[nodiscard]] Room room() const noexcept override { return local_->room(); }
    [[nodiscard]] Result<void> allocate(FileRange range) override { return local_->allocate(range); }
    // release() gives nothing back: the bytes here would read as zeroes, and those of the replica as before.
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override
    {
        return local_->read(offset, destination);
    }
    void detach_after_fork() noexcept override;
    [[nodiscard]] Result<void> publish() override;
    void honour_holds() noexcept override { local_->honour_holds(); }
    void begin_turn() noexcept override { local_->begin_turn(); }
    void end_turn() noexcept override { local_->end_turn(); }
    [[nodiscard]] Result<void> write(std::span<const BlockWrite> batch) override;
    [[nodiscard]] Result<void> sync() override;
    [[nodiscard]] Result<void> check_intact() override;

private:
    class Sender;

    ReplicatedMedium(std::unique_ptr<Medium> local, ReplicaSettings settings, const ReplicaRecord& record);
    [[nodiscard]] Result<void> begin_change();
    [[nodiscard]] Result<void> await_replica(std::uint64_t position);
    [[nodiscard]] Result<void> store_state(ReplicaState state);
    [[nodiscard]] Result<void> note_pool();
    [[nodiscard]] std::uint64_t newest_epoch() const noexcept;
    void note_quiet() noexcept;
    void tell_figures() const noexcept;
    [[nodiscard]] bool wait_confirmed(std::uint64_t position, std::uint64_t deadline_ns) const noexcept;

    std::unique_ptr<Medium> local_;
    ReplicaSettings settings_;
    std::string mechanism_;
    ReplicaRecord record_;
    std::optional<ReplicaRecordFile> record_file_;
    os::FutexLock record_lock_;  ///< of record_, record_file_ and is_quiet_
    bool is_quiet_ = true;  ///< nothing was written here since a sync that has ended
    bool is_public_ = false;  ///< this run's opening is in both
    bool is_detached_ = false;
    bool is_finished_ = false;
    std::unique_ptr<Sender> sender_;
};

}  // namespace stillpoint
