#pragma once
// A new, smaller pool with the objects of a pool at rest, as `stillpoint compact` makes it.

#include "runtime/engine.hpp"

namespace stillpoint::breeze {

/// EngineDriver::compact.
[[nodiscard]] Result<CompactionFigures> compact_pool(const Pool& pool, const CompactionRequest& request,
                                                     void (*progress)(std::uint64_t done, std::uint64_t total));

}  // namespace stillpoint::breeze
