#pragma once
// Reads and checks the logs and markers of a pool that is opened, or that a tool examines.

#include "core/findings.hpp"
#include "core/result.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/spht_layout.hpp"
#include "logs/recovered_logs.hpp"

namespace stillpoint::spht {

struct RecoveredLogs : logs::RecoveredLogs {
    const ProtocolRow* protocol;  ///< whose logs they are
};

/// Reads markers and logs. `bytes` has those of every chunk. Errors: pool_corrupt (which transaction, and what is kept), no_memory, io.
[[nodiscard]] Result<RecoveredLogs> read_logs(const Pool& pool, std::uint64_t durable_epoch, const logs::LogBytes& bytes,
                                              Findings* findings);

}  // namespace stillpoint::spht
