#pragma once
// The difference of two pools whose engine knows the objects: an object has an identity of its own, wherever it lies.

#include "pool_access.hpp"
#include "pool_difference.hpp"

namespace stillpoint::tool {

/// Objects that the roots lead to. `limit`: so many objects, and so many fields and ranges of each. Errors: pool_corrupt (damage in either
/// pool), io, no_memory.
[[nodiscard]] Result<PoolDifference> difference_of_objects(const OpenedPool& before, const OpenedPool& after, std::size_t limit);

}  // namespace stillpoint::tool
