#pragma once
// wholecopy: the least that an engine can be, for the tests, which show by it that an engine is a folder and a line of the registry. A
// checkpoint stops the program between its sections, copies the whole image, and hands every page of the copy to the writer, which leaves
// out those that are as they were. Nothing finds stores.

#include <memory>

#include "runtime/checkpoint_turns.hpp"
#include "runtime/mirrored_ranges.hpp"
#include "os/reserved_array.hpp"
#include "versions/announced_segments.hpp"
#include "versions/epoch_writer.hpp"
#include "versions/image_engine.hpp"

namespace stillpoint::wholecopy {

/// The engine's entry for the registry.
[[nodiscard]] EngineDriver driver() noexcept;

class WholecopyEngine final : public versions::ImageEngine {
public:
    WholecopyEngine() noexcept : ImageEngine({"checkpoint", "a failure-atomic section"}) {}
    ~WholecopyEngine() override { loader_.stop(); }

    [[nodiscard]] Result<RecoveryReport> start(Pool pool, const Options& options) override;
    [[nodiscard]] Result<std::uint64_t> grow(std::uint64_t wanted) override;
    [[nodiscard]] Result<void> mirror(const MirroredRange& range) override { return mirrored_.add(range); }

    [[nodiscard]] bool handle_fault(void*) noexcept override { return false; }
    [[nodiscard]] bool needs_fault_handler() const noexcept override { return false; }
    void prepare_kernel_write(void*, std::size_t) noexcept override {}
    void note_kernel_write(void*, std::size_t) noexcept override {}
    [[nodiscard]] std::string_view tracker_name() const noexcept override { return "everything"; }

private:
    [[nodiscard]] Result<void> start_checkpoints() override { return turns_->start(); }
    [[nodiscard]] bool end_checkpoints(bool clean) noexcept override { return clean && turns_->finish(); }
    void request_checkpoint() noexcept override { turns_->request(); }
    void announce_segment(const Segment& segment) noexcept override { announced_.announce(segment); }
    void detach_parts_after_fork() noexcept override { turns_->detach_after_fork(); }

    [[nodiscard]] CheckpointTurn take_checkpoint(bool last) noexcept;
    void copy_in_stop() noexcept;
    [[nodiscard]] Result<void> write_copy(bool clean) noexcept;

    std::uint64_t stop_attempt_ns_ = 0;
    std::unique_ptr<CheckpointTurns> turns_;
    std::unique_ptr<versions::EpochWriter> writer_;
    MirroredRanges mirrored_;
    versions::AnnouncedSegments announced_;
    os::ReservedArray<std::byte> copy_;
    // The last stop:
    std::uint64_t copied_bytes_ = 0;
    std::uint64_t captured_epoch_ = 0;
    std::uint64_t captured_ns_ = 0;
    std::uint64_t captured_unix_ns_ = 0;
};

}  // namespace stillpoint::wholecopy
