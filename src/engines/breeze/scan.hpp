#pragma once
// The scan of an opening: which blocks are free, which objects nothing points to, and which were allocated by transactions that did not
// finish [Breeze, thesis §3.2.2].

#include <cstdint>

#include "engines/breeze/pool_parts.hpp"

namespace stillpoint::breeze {

struct ScanFigures {
    std::uint64_t objects = 0;
    std::uint64_t unfinished = 0;  ///< freed: their transactions did not commit
};

/// Rebuilds pool.zones, frees objects of unfinished transactions durably, and tells pool.counts of objects without references. Damaged
/// headers are reported and counted; their blocks stay as they are.
[[nodiscard]] ScanFigures scan_zones(PoolParts& pool, unsigned threads);

}  // namespace stillpoint::breeze
