#pragma once
// The engine: puts the parts together. README.md says which part of the paper is where.

#include <memory>
#include <optional>

#include "engines/spht/log_recovery.hpp"
#include "engines/spht/in_place.hpp"
#include "engines/spht/transactional_memory.hpp"
#include "logs/logged_engine.hpp"

namespace stillpoint {
struct Session;
}

namespace stillpoint::spht {

/// The engine's entry for the registry.
[[nodiscard]] EngineDriver driver() noexcept;

class SphtEngine final : public logs::LoggedEngine {
public:
    SphtEngine() noexcept : LoggedEngine({"replay", "a transaction"}) {}
    ~SphtEngine() override;

    [[nodiscard]] Result<RecoveryReport> start(Pool pool, const Options& options) override;
    [[nodiscard]] Result<std::uint64_t> grow(std::uint64_t wanted) override;
    [[nodiscard]] Result<void> mirror(const MirroredRange& range) override;
    void thread_ends() noexcept override;

    [[nodiscard]] bool handle_fault(void* address) noexcept override;
    [[nodiscard]] bool needs_fault_handler() const noexcept override { return memory_.verifies_stores(); }
    void prepare_kernel_write(void* address, std::size_t size) noexcept override;
    void note_kernel_write(void* address, std::size_t size) noexcept override;
    [[nodiscard]] Result<int> run_as_one(int (*work)(), std::uint64_t& word, std::uint64_t value) override;
    [[nodiscard]] std::string_view tracker_name() const noexcept override;

private:
    [[nodiscard]] Result<void> start_checkpoints() override;
    [[nodiscard]] bool end_checkpoints(bool clean) noexcept override;
    void request_checkpoint() noexcept override;
    [[nodiscard]] Result<void> enlarge_image(std::uint64_t bytes) override;
    void detach_parts_after_fork() noexcept override;
    friend TransactionalMemory* memory_of_session(const Session& session) noexcept;
    [[nodiscard]] Result<void> recover_logs(std::uint64_t durable_epoch, RecoveryReport& report);
    [[nodiscard]] Result<void> load_image(std::string_view choice, RecoveryReport& report);
    static void note_store_of_library(const void* address, std::size_t size) noexcept;
    static void note_block_state(const void* address, std::size_t size) noexcept;
    static void note_dying_memory(const void* begin, std::size_t size_bytes) noexcept;
    static void log_group(std::span<const std::span<const std::byte>> ranges) noexcept;

    std::optional<RecoveredLogs> recovered_;
    const ProtocolRow* protocol_ = nullptr;
    std::optional<InPlace> in_place_;
    TransactionalMemory memory_;
};

/// The transactions of that session's pool; nullptr: its engine is another one. Any thread.
[[nodiscard]] TransactionalMemory* memory_of_session(const Session& session) noexcept;

}  // namespace stillpoint::spht
