#pragma once
// Algorithm 1 [Breeze, thesis §3.2.6]: pointers are rewritten when a pool lies at another address than before. The pool keeps the address
// of each generation, and each object the generation that its pointers have, so a rewriting may be cut off by a crash, and go on at yet
// another address.

#include <cstdint>

#include "core/result.hpp"
#include "engines/breeze/pool_parts.hpp"

namespace stillpoint::breeze {

/// Undoes the words that a crash has left half rewritten, and finishes objects of which it has left a part. Before anything else looks at
/// pointers. Errors: pool_corrupt.
[[nodiscard]] Result<void> recover_rewriting(PoolParts& pool);

/// After scan_zones(): makes all pointers valid at the present address. Returns how many were changed. Errors: pool_corrupt, no_memory.
[[nodiscard]] Result<std::uint64_t> rewrite_pointers(PoolParts& pool, unsigned threads);

}  // namespace stillpoint::breeze
