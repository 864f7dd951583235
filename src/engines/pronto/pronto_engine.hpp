#pragma once
// The engine: puts the parts together. README.md says which part of the thesis is where.

#include <memory>
#include <optional>

#include "engines/pronto/operation_log.hpp"
#include "engines/pronto/snapshot_hooks.hpp"
#include "engines/pronto/snapshot_pieces.hpp"
#include "engines/pronto/snapshot_staging.hpp"
#include "engines/pronto/snapshot_thread.hpp"
#include "os/futex.hpp"
#include "os/userfaultfd.hpp"
#include "versions/image_engine.hpp"

namespace stillpoint {
struct Session;
}

namespace stillpoint::pronto {

/// The engine's entry for the registry.
[[nodiscard]] EngineDriver driver() noexcept;

class ProntoEngine final : public versions::ImageEngine {
public:
    ProntoEngine() noexcept : ImageEngine({"snapshot", "an operation or a failure-atomic section"}) {}
    ~ProntoEngine() override;

    [[nodiscard]] Result<RecoveryReport> start(Pool pool, const Options& options) override;
    [[nodiscard]] Result<std::uint64_t> grow(std::uint64_t wanted) override;
    [[nodiscard]] Result<void> mirror(const MirroredRange& range) override;

    [[nodiscard]] bool handle_fault(void* address) noexcept override;
    [[nodiscard]] bool needs_fault_handler() const noexcept override { return true; }
    void prepare_kernel_write(void* address, std::size_t size) noexcept override;
    void note_kernel_write(void* address, std::size_t size) noexcept override;
    [[nodiscard]] std::string_view tracker_name() const noexcept override;

private:
    [[nodiscard]] Result<void> start_checkpoints() override;
    [[nodiscard]] bool end_checkpoints(bool clean) noexcept override;
    void request_checkpoint() noexcept override;
    void announce_segment(const Segment& segment) noexcept override;
    [[nodiscard]] Result<void> enlarge_image(std::uint64_t bytes) override;
    void detach_parts_after_fork() noexcept override;
    friend OperationLog* log_of_session(const Session& session) noexcept;
    [[nodiscard]] Result<void> load_image(std::string_view choice, RecoveryReport& report);
    [[nodiscard]] Result<void> start_log(const Options& options);
    [[nodiscard]] SnapshotLinks links() noexcept;
    /// No snapshot becomes durable any more.
    void fail_for_good(const Failure& failure) noexcept;

    SnapshotStaging staging_;
    SnapshotPieces pieces_{shadow_, staging_};
    SnapshotHooks hooks_;
    std::optional<SnapshotThread> snapshots_;
    std::optional<OperationLog> log_;
    os::FutexLock failing_lock_;
};

/// The log of the objects of that session's pool; nullptr: its engine is another one. Any thread.
[[nodiscard]] OperationLog* log_of_session(const Session& session) noexcept;

}  // namespace stillpoint::pronto
