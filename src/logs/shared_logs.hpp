#pragma once
// SharedLogs: on block media a page is the least that a sync writes, so threads share a few logs, and many that wait have few pages. A log
// is locked while its thread appends, and the threads of one take turns.

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/result.hpp"
#include "logs/redo_log.hpp"

namespace stillpoint::logs {

/// Threads: any, after prepare().
class SharedLogs {
public:
    /// From here on threads share logs: one for each CPU that the machine has, at most logs_max. They are called `first_number` and the
    /// numbers after it. Errors: no_memory.
    [[nodiscard]] Result<void> prepare(ChunkSpace& space, Medium& medium, std::uint64_t first_number, std::uint64_t run) noexcept;

    /// False: each thread has a log of its own.
    [[nodiscard]] bool are_used() const noexcept { return count_ != 0; }
    /// How many logs there are when `threads` threads have been given numbers, from 0.
    [[nodiscard]] std::uint32_t logs_of(std::uint32_t threads) const noexcept { return count_ == 0 ? threads : std::min(threads, count_); }
    /// The log that the thread with this number appends to: a shared one, or `own`.
    [[nodiscard]] RedoLog& log_of(std::uint64_t thread, RedoLog& own) noexcept { return count_ == 0 ? own : logs_[thread % count_]; }

private:
    static constexpr std::uint32_t logs_max = 8;

    std::array<RedoLog, logs_max> logs_;
    std::uint32_t count_ = 0;
};

}  // namespace stillpoint::logs
