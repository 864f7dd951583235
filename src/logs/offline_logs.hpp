#pragma once
// The logs of a pool that is not open, for tools, of every engine that has redo logs. Which records count is read by the engine's own
// function.

#include <cstdint>
#include <span>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "logs/log_area_layout.hpp"
#include "logs/log_scan.hpp"
#include "pool/pool.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::logs {

struct LogsOfPool {
    ReplayPoint point;  ///< of the durable epoch
    Timestamp marker;   ///< up to which records count
    LogIndex index;
};

/// `bytes` has those of every chunk. Errors: pool_corrupt (which record, and what is kept), no_memory, io.
using ReadLogs = Result<LogsOfPool> (*)(const Pool& pool, std::uint64_t durable_epoch, const LogBytes& bytes, Findings* findings);

/// EngineDriver::inspect: also reads the replay point.
[[nodiscard]] Result<RecoveryReport> inspect_pool(const Pool& pool);

/// EngineDriver::check, with `read`: page copies, markers and logs; `visit_image` sees the image with the logs applied.
[[nodiscard]] Result<RecoveryReport> check_pool(const Pool& pool, ReadLogs read, Findings* findings,
                                                Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes),
                                                void* context, void (*progress)(std::uint64_t done, std::uint64_t total));

/// EngineFacts::visit, with `read`: one row for each log, of its number, its run, its records that the page copies lack, the newest
/// timestamp, how far the page copies go, and the marker.
[[nodiscard]] Result<void> visit_logs(const Pool& pool, ReadLogs read, Findings& findings,
                                      void (*show)(void* context, std::span<const Fact> row), void* context);

}  // namespace stillpoint::logs
