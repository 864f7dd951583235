#pragma once
// Reads and checks the logs and markers of a pool that is opened, or that a tool examines.

#include "core/findings.hpp"
#include "core/result.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/spht_layout.hpp"
#include "logs/grouped_logs.hpp"

namespace stillpoint::spht {

struct RecoveredLogs {
    ReplayPoint point;           ///< of the durable epoch
    logs::Timestamp marker;      ///< every transaction up to it was durable
    bool has_marker;             ///< its word was written: it is before anything is logged, whatever the medium
    const ProtocolRow* protocol; ///< whose logs they are
    logs::GroupRecord group;     ///< block media: the newest one in force
    logs::LogIndex index;
};

/// Reads markers and logs. `bytes` has those of every chunk. Errors: pool_corrupt (which transaction, and what is kept), no_memory, io.
[[nodiscard]] Result<RecoveredLogs> read_logs(const Pool& pool, std::uint64_t durable_epoch, const logs::LogBytes& bytes,
                                              Findings* findings);

}  // namespace stillpoint::spht
