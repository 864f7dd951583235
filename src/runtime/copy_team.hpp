#pragma once
// Work that a stop waits for, shared by every core: the program is held, so the cores are idle.

#include <array>
#include <atomic>
#include <cstdint>

#include "arch/native.hpp"
#include "core/result.hpp"
#include "os/service_thread.hpp"

namespace stillpoint {

/// Threads: share() and copy() by the checkpoint thread only.
class CopyTeam {
public:
    struct PageCopy {  ///< of page_bytes; the destination is a multiple of that
        std::byte* destination;
        const std::byte* source;
    };
    /// Does items [begin, end). Runs on several threads at once, for different items.
    using Work = void (*)(void* context, std::uint64_t begin, std::uint64_t end);

    CopyTeam() = default;
    CopyTeam(const CopyTeam&) = delete;
    CopyTeam& operator=(const CopyTeam&) = delete;
    ~CopyTeam() { stop(); }

    /// Starts one assistant for each further core, at most assistants_max. Errors: no_memory.
    [[nodiscard]] Result<void> start();
    void stop() noexcept;
    void detach_after_fork() noexcept;

    /// Returns when work has been called for all items [0, count), `at_a_time` in a call.
    void share(std::uint64_t count, std::uint64_t at_a_time, Work work, void* context) noexcept;

    /// Returns when all pages are copied. Small jobs are done by the caller alone: waking an
    /// assistant takes as long as copying some hundred pages.
    void copy(const PageCopy* pages, std::uint64_t count) noexcept;

private:
    static constexpr unsigned assistants_max = 3;

    static void assist(void* self);
    /// Does shares of job number `job` until none is left.
    void take_shares(std::uint32_t job) noexcept;

    const arch::Native arch_ = arch::Native::detect();
    std::array<os::ServiceThread, assistants_max> assistants_;
    unsigned assistant_count_ = 0;
    std::atomic<std::uint32_t> job_{0};       ///< number of the job; a futex
    std::atomic<std::uint32_t> working_{0};   ///< assistants inside the present job
    /// Number of the job (high half) and its first item that was not taken (low half): one word, so
    /// that an assistant that comes late cannot take a share of a job it did not look at.
    std::atomic<std::uint64_t> next_{0};
    std::atomic<Work> work_{nullptr};
    std::atomic<void*> context_{nullptr};
    std::atomic<std::uint64_t> count_{0};
    std::atomic<std::uint64_t> at_a_time_{1};
    std::atomic<bool> stopping_{false};
};

}  // namespace stillpoint
