#pragma once
// Waits until a pool is free, its objects in memory meanwhile, and takes it.

#include "cluster.hpp"
#include "ownership.hpp"
#include "warm_cache.hpp"

namespace stillpoint::rados {

/// Returns when this client owns the pool; ends the process where its program has ended. A cluster that does not answer is waited for.
/// Errors: pool_missing, pool_corrupt, pool_read_only and others of Ownership::try_take_free(), but for timed_out.
[[nodiscard]] Result<void> await_ownership(Ownership& ownership, WarmCache& cache);

}  // namespace stillpoint::rados
