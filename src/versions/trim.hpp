#pragma once
// Gives the disk back what no copy in force lies in.

#include "core/result.hpp"
#include "pool/pool.hpp"

namespace stillpoint::versions {

/// EngineDriver::trim. `pool` is open for writing, and no program has it. A crash at any moment leaves the pool as it was, with less room
/// on the disk. Errors: pool_corrupt, pool_truncated, io, no_memory.
[[nodiscard]] Result<void> trim_pool(Pool& pool, bool has_delta_log);
/// Pools of engines without a delta log.
[[nodiscard]] inline Result<void> trim_pool(Pool& pool) { return trim_pool(pool, false); }

}  // namespace stillpoint::versions
