#pragma once
// Reads and checks the logs of a pool that is opened, or that a tool examines.

#include "core/findings.hpp"
#include "core/result.hpp"
#include "logs/recovered_logs.hpp"

namespace stillpoint::nvthreads {

/// `bytes` has those of every chunk. Errors: pool_corrupt (which record, and what is kept), no_memory, io.
[[nodiscard]] Result<logs::RecoveredLogs> read_logs(const Pool& pool, std::uint64_t durable_epoch, const logs::LogBytes& bytes,
                                                    Findings* findings);

}  // namespace stillpoint::nvthreads
