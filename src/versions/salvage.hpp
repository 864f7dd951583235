#pragma once
// Salvage: makes a damaged pool one that opens, with every page that its checksums prove.
//
// A page is sound if the copy that the durable epoch names verifies, and all its lines are there. Else it is kept as an older epoch left
// it, where the other place of its table page names a copy that verifies; else it is zero. Nothing that is not proved is called sound:
// where a table page in force is lost, its older place names copies that a later epoch may have replaced.

#include "pool/pool.hpp"
#include "runtime/salvage.hpp"

namespace stillpoint::versions {

/// EngineDriver::salvage. `pool` is a private copy of the damaged pool, opened for writing: it is changed in place, and whole only when
/// this returns. Errors: pool_corrupt (no commit record is valid, or the segments have no shape), pool_truncated, no_memory, io, no_space.
[[nodiscard]] Result<SalvageReport> salvage_pool(Pool& pool, bool has_delta_log);
/// Engines without a delta log.
[[nodiscard]] inline Result<SalvageReport> salvage_pool(Pool& pool) { return salvage_pool(pool, false); }

}  // namespace stillpoint::versions
