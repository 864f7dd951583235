#pragma once
// A new pool with every object that a damaged one proves, as `stillpoint salvage` makes it.

#include "runtime/engine.hpp"

namespace stillpoint::breeze {

/// EngineDriver::salvage_objects.
[[nodiscard]] Result<ObjectSalvage> salvage_objects(const Pool& pool, const CompactionRequest& request,
                                                    void (*progress)(std::uint64_t done, std::uint64_t total));

}  // namespace stillpoint::breeze
