#pragma once
// Option `damaged`: how a session opens a pool that may be damaged.

#include "core/result.hpp"
#include "pool/pool.hpp"
#include "runtime/engine.hpp"

namespace stillpoint {

/// read-only: puts a private copy of the pool in order, so that it opens with all that is proved, and says what is not. An engine that
/// cannot prove parts opens its pool as it is. Errors: as EngineDriver::salvage.
[[nodiscard]] Result<void> keep_what_is_sound(Pool& pool, const EngineDriver& driver);

/// older-epoch: reads the whole pool. If it is sound nothing happens; else, if the epoch before the newest one is sound, that one is in
/// force when this returns, durably, and a warning says what is lost. Errors: pool_corrupt (neither is), io, no_memory, no_space.
[[nodiscard]] Result<void> go_back_if_damaged(Pool& pool, const EngineDriver& driver);

}  // namespace stillpoint
