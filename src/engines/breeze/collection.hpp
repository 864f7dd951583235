#pragma once
// Frees what cannot be reached from the root, cycles too. Marking goes on while transactions run; they are held at their begin only for
// the moment in which the last marks are made. What is freed is not used again before the collection has ended: after a crash within it,
// the next opening collects before the program runs, and objects that are left point at free blocks and not at new objects.

#include <cstdint>

#include "core/result.hpp"
#include "engines/breeze/pool_parts.hpp"
#include "engines/breeze/transaction_gate.hpp"

namespace stillpoint::breeze {

struct CollectionFigures {
    std::uint64_t kept = 0;
    std::uint64_t freed = 0;
    std::uint64_t bytes_freed = 0;
    std::uint64_t stop_ns = 0;
};

/// One at a time for each pool. Errors: pool_corrupt, timed_out, no_memory.
[[nodiscard]] Result<CollectionFigures> collect(PoolParts& pool, TransactionGate& gate);

}  // namespace stillpoint::breeze
