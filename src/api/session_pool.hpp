#pragma once
// The pool that a session works on: found or created, with the engine that it belongs to.

#include <string>

#include "core/result.hpp"
#include "pool/pool.hpp"
#include "runtime/engine.hpp"
#include "runtime/options.hpp"

namespace stillpoint {

class PrivateMedium;
class ReplicatedMedium;

struct SessionPool {
    Pool pool;
    const EngineDriver* driver;
    PrivateMedium* private_medium = nullptr;  ///< the pool's medium, where the file is only read
    ReplicatedMedium* replicated_medium = nullptr;  ///< the pool's medium, where it has a replica
};

/// The addresses of a new pool.
enum class PoolPlace {
    usual,  ///< those that every pool of `stillpoint run` has, where they are free
    free,   ///< some that no other pool is likely to have
};

/// Opens the pool that `options` name, with the engine it belongs to; creates it where there is none. Nothing is written to an existing
/// pool, but where option `damaged` says so (damaged_pool.hpp), and a new one has no name yet.
/// Errors: invalid_argument and pool_engine (an option that was given contradicts the pool);
/// already_open (it is, or its engine or that of an open pool needs the process for itself); window_taken (an open pool has its addresses);
/// as Pool::open() and Pool::create().
[[nodiscard]] Result<SessionPool> open_or_create_pool(const Options& options, PoolPlace where = PoolPlace::usual,
                                                      unsigned session_number = 0);

/// The reason for which every later opening fails, as far as it can be known without changing anything. Errors: as open_or_create_pool().
[[nodiscard]] Result<void> validate_pool(const Options& options);

/// The name of the engine that the next opening will have, as far as that can be seen without a lock: what is named, otherwise the pool's
/// own, otherwise that of a new pool.
[[nodiscard]] std::string engine_of_next_opening(const Options& options);

/// Whether the options that were given, and hold for new pools only, agree with this pool. Errors: invalid_argument, pool_engine; the
/// message names the option and the pool's own value.
[[nodiscard]] Result<void> check_creation_options(const Options& options, const PoolFacts& facts);

}  // namespace stillpoint
