#pragma once
// The figures of a checkpoint that every engine with checkpoints reports: words of the statistics page.

#include <cstdint>

namespace stillpoint {

class Medium;

/// Threads: the engine's checkpoint thread only.
void record_stop(std::uint64_t running_epoch, std::uint64_t stop_ns, std::uint64_t quiesce_ns) noexcept;

/// `epoch` is durable; its state is that of `captured_ns` (monotonic). Threads: the engine's checkpoint thread only.
void record_commit(std::uint64_t epoch, std::uint64_t captured_ns, std::uint64_t write_ns, const Medium& medium) noexcept;

/// For tracers: the memory of `epoch` is captured, and the next epoch has begun. Threads: the engine's checkpoint thread only.
void probe_captured(std::uint64_t epoch) noexcept;

}  // namespace stillpoint
