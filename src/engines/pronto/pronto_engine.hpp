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
#include "runtime/engine.hpp"
#include "runtime/epoch_clock.hpp"
#include "runtime/shadow.hpp"
#include "versions/loader.hpp"
#include "versions/location_allocator.hpp"
#include "versions/version_table.hpp"

namespace stillpoint::pronto {

/// The engine's entry for the registry.
[[nodiscard]] EngineDriver driver() noexcept;

class ProntoEngine final : public Engine {
public:
    ~ProntoEngine() override;

    [[nodiscard]] Result<RecoveryReport> start(Pool pool, const Options& options) override;
    Result<void> run() override;
    [[nodiscard]] Result<void> stop(bool clean) override;
    void before_fork() noexcept override;
    void detach_after_fork() noexcept override;

    [[nodiscard]] std::byte* image_base() const noexcept override { return shadow_.base(); }
    [[nodiscard]] std::uint64_t image_bytes() const noexcept override { return shadow_.bytes(); }
    [[nodiscard]] const PoolFacts& pool_facts() const noexcept override { return pool_->facts(); }
    [[nodiscard]] Result<std::uint64_t> grow(std::uint64_t wanted) override;
    [[nodiscard]] Result<void> mirror(const MirroredRange& range) override;

    [[nodiscard]] std::uint64_t epoch() const noexcept override { return clock_.running(); }
    [[nodiscard]] std::uint64_t durable_epoch() const noexcept override { return clock_.durable(); }
    [[nodiscard]] Result<void> wait_durable(std::uint64_t epoch, std::uint64_t deadline_ns) override;
    [[nodiscard]] Result<void> checkpoint_now() override;

    [[nodiscard]] bool handle_fault(void* address) noexcept override;
    [[nodiscard]] bool absorb_lost_page(void* address) noexcept override;
    [[nodiscard]] bool needs_fault_handler() const noexcept override { return true; }
    void prepare_kernel_write(void* address, std::size_t size) noexcept override;
    void note_kernel_write(void* address, std::size_t size) noexcept override;
    [[nodiscard]] std::string_view tracker_name() const noexcept override;

private:
    friend OperationLog* log_of_engine(const Engine& engine) noexcept;
    [[nodiscard]] Result<void> load_image(std::string_view choice, RecoveryReport& report);
    [[nodiscard]] Result<void> choose_loading(std::string_view choice, RecoveryReport& report);
    [[nodiscard]] Result<void> start_log(const Options& options);
    [[nodiscard]] SnapshotLinks links() noexcept;
    /// No snapshot becomes durable any more.
    void fail_for_good(const Failure& failure) noexcept;

    std::unique_ptr<Pool> pool_;
    Shadow shadow_;
    versions::VersionTable table_;
    versions::LocationAllocator locations_;
    std::optional<os::Userfaultfd> serving_;  ///< of pages that are loaded when first touched
    versions::Loader loader_;
    EpochClock clock_;
    os::FutexLock medium_lock_;
    os::FutexLock growing_lock_;
    SnapshotStaging staging_;
    SnapshotPieces pieces_{shadow_, staging_};
    SnapshotHooks hooks_;
    std::optional<SnapshotThread> snapshots_;
    std::optional<OperationLog> log_;
    os::FutexLock failing_lock_;
    std::uint64_t pages_end_ = 0;  ///< one past the last image page with a durable copy
    bool after_crash_ = false;
    bool detached_ = false;
};

/// The log of the objects of that engine's pool; nullptr: the engine is another one. Any thread.
[[nodiscard]] OperationLog* log_of_engine(const Engine& engine) noexcept;

}  // namespace stillpoint::pronto
