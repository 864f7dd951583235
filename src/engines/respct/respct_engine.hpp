#pragma once
// The engine: puts the parts together. README.md says which part of the paper is where.

#include <memory>
#include <optional>
#include <vector>

#include "engines/respct/checkpointer.hpp"
#include "engines/respct/huge_pages.hpp"
#include "engines/respct/image_memory.hpp"
#include "engines/respct/line_writer.hpp"
#include "engines/respct/recovery.hpp"
#include "engines/respct/table_copies.hpp"
#include "engines/respct/thread.hpp"
#include "os/futex.hpp"
#include "runtime/engine.hpp"
#include "runtime/epoch_clock.hpp"

namespace stillpoint::respct {

[[nodiscard]] EngineDriver driver() noexcept;

class RespctEngine final : public Engine {
public:
    RespctEngine() = default;
    ~RespctEngine() override;

    [[nodiscard]] Result<RecoveryReport> start(Pool pool, const Options& options) override;
    Result<void> run() override;
    [[nodiscard]] Result<void> stop(bool clean) override;
    void thread_ends() noexcept override { thread_exit(); }
    [[nodiscard]] bool begin_rest() noexcept override { return respct::begin_rest(); }
    void end_rest() noexcept override { respct::end_rest(); }
    void before_fork() noexcept override {}
    void detach_after_fork() noexcept override;

    [[nodiscard]] std::byte* image_base() const noexcept override { return memory_.base(); }
    [[nodiscard]] std::uint64_t image_bytes() const noexcept override { return memory_.bytes(); }
    [[nodiscard]] const PoolFacts& pool_facts() const noexcept override { return pool_->facts(); }
    [[nodiscard]] Result<std::uint64_t> grow(std::uint64_t wanted) override;
    [[nodiscard]] Result<void> mirror(const MirroredRange& range) override;

    [[nodiscard]] std::uint64_t epoch() const noexcept override { return clock_.running(); }
    [[nodiscard]] std::uint64_t durable_epoch() const noexcept override { return clock_.durable(); }
    [[nodiscard]] Result<void> wait_durable(std::uint64_t epoch, std::uint64_t deadline_ns) override;
    [[nodiscard]] Result<void> checkpoint_now() override;

    [[nodiscard]] bool handle_fault(void*) noexcept override { return false; }
    [[nodiscard]] bool absorb_lost_page(void* address) noexcept override { return pool_->medium().absorb_lost_page(address); }
    [[nodiscard]] bool needs_fault_handler() const noexcept override { return false; }
    void prepare_kernel_write(void*, std::size_t) noexcept override {}
    /// Lines are listed by note_store, which is called as well.
    void note_kernel_write(void*, std::size_t) noexcept override {}
    [[nodiscard]] std::string_view tracker_name() const noexcept override { return "logged variables"; }

private:
    /// Where stores of the library itself go: lines, or pages of the tables.
    static void note_store_of_library(const void* address, std::size_t size_bytes) noexcept;
    void take_over_notes(std::uint64_t next_epoch, std::uint64_t durable) noexcept;
    void give_notes_back() noexcept;

    std::unique_ptr<Pool> pool_;
    ImageMemory memory_;
    TableCopies tables_;
    LineWriter writer_;
    EpochClock clock_;
    os::FutexLock medium_lock_;
    std::uint64_t heap_offset_ = 0;
    std::vector<Change> changes_;  ///< by recovery in a copy of the medium; run() makes them in the medium
    std::optional<Checkpointer> checkpointer_;
    HugePages huge_pages_;
    bool notes_taken_ = false;
    bool detached_ = false;
};

}  // namespace stillpoint::respct
