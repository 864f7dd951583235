#pragma once
// Reads and checks the logs of a pool that is opened, or that a tool examines.

#include "core/findings.hpp"
#include "core/result.hpp"
#include "logs/grouped_logs.hpp"

namespace stillpoint::nvthreads {

struct RecoveredLogs {
    logs::ReplayPoint point;  ///< of the durable epoch
    bool has_marker;          ///< its word was written: it is before anything is logged
    logs::GroupRecord group;  ///< the newest in force: its marker is where the crash cuts the logs
    logs::LogIndex index;
};

/// `bytes` has those of every chunk. Errors: pool_corrupt (which record, and what is kept), no_memory, io.
[[nodiscard]] Result<RecoveredLogs> read_logs(const Pool& pool, std::uint64_t durable_epoch, const logs::LogBytes& bytes,
                                              Findings* findings);

}  // namespace stillpoint::nvthreads
