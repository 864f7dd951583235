#pragma once
// The common part of recovery and the offline tools: the version table as of the durable epoch, and
// the free locations that follow from it [PMThreads §4.3].

#include "core/findings.hpp"
#include "versions/delta_log.hpp"
#include "versions/location_allocator.hpp"
#include "versions/version_table.hpp"
#include "pool/pool.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::versions {

struct RecoveredState {
    RecoveryReport report;
    std::uint64_t next_epoch = 1;
    std::uint64_t pages_end = 0;  ///< one past the last image page with a copy
    /// The run before ended in a crash: what it stored may be readable and yet not durable.
    bool after_crash = false;
};

/// For engines whose pools have a delta log: it, and what recovery lays over the pages.
struct Deltas {
    DeltaLog log;
    DeltaReplay replay;
};

/// Loads `table` and fills `locations`. Writes nothing: a crash here changes nothing.
/// With `findings` it continues after damage, leaving out what is damaged: for a check, not for a start.
/// Errors: pool_corrupt (a location used twice or outside, the digest), pool_truncated, io, no_memory.
/// `deltas`: the pool has a log; nullptr: it has none.
[[nodiscard]] Result<RecoveredState> recover_state(const Pool& pool, VersionTable& table, LocationAllocator& locations,
                                                   Findings* findings = nullptr, Deltas* deltas = nullptr);

/// Byte-addressable media: where a process was killed, and not the machine, recovery has read what may still be in the CPU's caches
/// only. A power cut would roll it back: that must not happen once the program builds on it. The sync at the head of begin_run() has the
/// fence; on block media that sync alone does it all.
void write_back_what_was_recovered(Pool& pool, const VersionTable& table, bool after_crash) noexcept;

}  // namespace stillpoint::versions
