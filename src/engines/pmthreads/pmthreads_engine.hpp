#pragma once
// The pmthreads engine: shadow in DRAM, two durable copies of each page, checkpoints at
// quiescent states. README.md in this folder maps the paper's sections to files.

#include <memory>
#include <string>

#include "engines/pmthreads/checkpointer.hpp"
#include "engines/pmthreads/tracker.hpp"
#include "versions/image_engine.hpp"

namespace stillpoint::pmthreads {

/// The engine's entry for the registry.
[[nodiscard]] EngineDriver driver() noexcept;

class PmthreadsEngine final : public versions::ImageEngine {
public:
    PmthreadsEngine() noexcept : ImageEngine({"checkpoint", "a failure-atomic section"}) {}
    ~PmthreadsEngine() override;

    [[nodiscard]] Result<RecoveryReport> start(Pool pool, const Options& options) override;
    [[nodiscard]] Result<std::uint64_t> grow(std::uint64_t wanted) override;
    [[nodiscard]] Result<void> mirror(const MirroredRange& range) override;

    [[nodiscard]] bool handle_fault(void* address) noexcept override;
    [[nodiscard]] bool needs_fault_handler() const noexcept override;
    void prepare_kernel_write(void* address, std::size_t size) noexcept override;
    void note_kernel_write(void* address, std::size_t size) noexcept override;
    [[nodiscard]] std::string_view tracker_name() const noexcept override { return tracker_name_; }

private:
    [[nodiscard]] Result<void> start_checkpoints() override;
    [[nodiscard]] bool end_checkpoints(bool clean) noexcept override;
    void request_checkpoint() noexcept override;
    void announce_segment(const Segment& segment) noexcept override;
    void detach_parts_after_fork() noexcept override;
    [[nodiscard]] Result<void> choose_tracker(const Options& options, std::uint64_t image_bytes_max);
    [[nodiscard]] Result<void> take_all_room();
    [[nodiscard]] Result<void> load_image(std::string_view choice, RecoveryReport& report);

    bool takes_all_room_ = false;
    versions::Deltas deltas_;  ///< of pools that have a log
    std::unique_ptr<Tracker> tracker_;
    std::string tracker_name_;
    std::unique_ptr<Checkpointer> checkpointer_;
};

}  // namespace stillpoint::pmthreads
