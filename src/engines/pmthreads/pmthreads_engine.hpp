#pragma once
// The pmthreads engine: shadow in DRAM, two durable copies of each page, checkpoints at
// quiescent states. README.md in this folder maps the paper's sections to files.

#include <memory>
#include <string>

#include "engines/pmthreads/checkpointer.hpp"
#include "runtime/epoch_clock.hpp"
#include "versions/loader.hpp"
#include "versions/location_allocator.hpp"
#include "runtime/shadow.hpp"
#include "engines/pmthreads/tracker.hpp"
#include "versions/version_table.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::pmthreads {

/// The engine's entry for the registry.
[[nodiscard]] EngineDriver driver() noexcept;

class PmthreadsEngine final : public Engine {
public:
    ~PmthreadsEngine() override;

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
    [[nodiscard]] bool needs_fault_handler() const noexcept override;
    void prepare_kernel_write(void* address, std::size_t size) noexcept override;
    void note_kernel_write(void* address, std::size_t size) noexcept override;
    [[nodiscard]] std::string_view tracker_name() const noexcept override { return tracker_name_; }

private:
    [[nodiscard]] Result<void> choose_tracker(const Options& options, std::uint64_t image_bytes_max);
    [[nodiscard]] Result<void> load_image(std::string_view choice, RecoveryReport& report);

    std::unique_ptr<Pool> pool_;
    std::unique_ptr<Tracker> tracker_;
    std::string tracker_name_;
    Shadow shadow_;
    versions::VersionTable table_;
    versions::LocationAllocator locations_;
    versions::Loader loader_;
    EpochClock clock_;
    os::FutexLock medium_lock_;  ///< checkpoint thread against a growing pool
    std::unique_ptr<Checkpointer> checkpointer_;
    std::uint64_t pages_end_ = 0;  ///< one past the last image page with a durable copy
    bool after_crash_ = false;
    bool detached_ = false;
};

}  // namespace stillpoint::pmthreads
