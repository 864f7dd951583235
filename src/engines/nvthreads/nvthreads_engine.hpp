#pragma once
// The engine: puts the parts together. README.md says which part of the paper is where.

#include <memory>
#include <optional>
#include <string>

#include "engines/nvthreads/fase_logs.hpp"
#include "engines/nvthreads/log_recovery.hpp"
#include "logs/logged_engine.hpp"

namespace stillpoint::nvthreads {

/// The engine's entry for the registry.
[[nodiscard]] EngineDriver driver() noexcept;

class NvthreadsEngine final : public logs::LoggedEngine {
public:
    NvthreadsEngine() noexcept : LoggedEngine({"replay", "a section"}) {}
    ~NvthreadsEngine() override;

    [[nodiscard]] Result<RecoveryReport> start(Pool pool, const Options& options) override;
    [[nodiscard]] Result<std::optional<ProgramEnd>> divide_program() override;
    [[nodiscard]] bool divides_program() const noexcept override { return divides_; }
    [[nodiscard]] std::uint64_t epoch() const noexcept override;
    [[nodiscard]] std::uint64_t durable_epoch() const noexcept override;
    [[nodiscard]] Result<std::uint64_t> grow(std::uint64_t wanted) override;
    [[nodiscard]] Result<void> mirror(const MirroredRange& range) override;
    void thread_ends() noexcept override;
    /// Everything that the calling thread has done or seen, whatever the epoch.
    [[nodiscard]] Result<void> wait_durable(std::uint64_t epoch, std::uint64_t deadline_ns) override;
    [[nodiscard]] Result<void> checkpoint_now() override;

    [[nodiscard]] bool handle_fault(void* address) noexcept override;
    [[nodiscard]] bool needs_fault_handler() const noexcept override { return false; }
    void prepare_kernel_write(void* address, std::size_t size) noexcept override;
    void note_kernel_write(void* address, std::size_t size) noexcept override;
    [[nodiscard]] std::string_view tracker_name() const noexcept override;

    [[nodiscard]] FaseLogs& logs() noexcept { return logs_; }
    /// Stores and sections of this process are told to this engine from here on.
    void listen() noexcept;

private:
    [[nodiscard]] Result<void> start_checkpoints() override;
    [[nodiscard]] bool end_checkpoints(bool clean) noexcept override;
    void request_checkpoint() noexcept override;
    void detach_parts_after_fork() noexcept override;
    [[nodiscard]] Result<void> name_tracker();
    [[nodiscard]] Result<void> recover_logs(std::uint64_t durable_epoch, RecoveryReport& report);
    static void listen_no_more() noexcept;

    static void note_store_of_program(const void* address, std::size_t size) noexcept;
    static void note_store_of_library(const void* address, std::size_t size) noexcept;
    static void note_block_state(const void* address, std::size_t size) noexcept;
    static void pass_blocks() noexcept;
    static void hand_over(section_ends::Handover handover) noexcept;
    static void section_ended() noexcept;

    std::string tracker_name_;
    bool divides_ = false;  ///< threads=processes
    std::uint64_t wait_max_ns_ = 0;
    std::optional<logs::RecoveredLogs> recovered_;
    FaseLogs logs_;
};

}  // namespace stillpoint::nvthreads
