#pragma once
// Looks at a pool that is opened for reading: recovery runs on a copy in memory, and what it makes is examined.

#include <cstdint>
#include <memory>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "engines/breeze/breeze_pool.hpp"
#include "pool/pool.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::breeze {

/// EngineDriver::inspect.
[[nodiscard]] Result<RecoveryReport> inspect_pool(const Pool& pool);

/// EngineDriver::check; `visit_image` is not called.
[[nodiscard]] Result<RecoveryReport> check_pool(const Pool& pool, Findings* findings,
                                                Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes),
                                                void* context, void (*progress)(std::uint64_t done, std::uint64_t total));

/// The pool as an opening would make it, in memory; damaged objects go to `findings`. `pool` outlives it. `base_address`: where the copy
/// lies; 0: where the pool lay last, if that is free. Errors: pool_corrupt (nothing
/// more can be examined), pool_engine, pool_version, no_memory, io.
[[nodiscard]] Result<std::unique_ptr<BreezePool>>
open_copy(const Pool& pool, Findings& findings, void (*progress)(std::uint64_t done, std::uint64_t total), std::uintptr_t base_address = 0);

/// As open_copy(), for a salvage: damage of single objects, and of the root, is left for SoundObjects, which the other findings are not.
/// Errors: those of open_copy(); pool_corrupt (the address that pointers were made for is not known).
[[nodiscard]] Result<std::unique_ptr<BreezePool>> open_damaged_copy(const Pool& pool, Findings& findings,
                                                                    void (*progress)(std::uint64_t done, std::uint64_t total));

/// As open_copy(), and a check has found nothing. Errors: pool_corrupt (also the first finding), and as open_copy().
[[nodiscard]] Result<std::unique_ptr<BreezePool>> open_sound_copy(const Pool& pool,
                                                                  void (*progress)(std::uint64_t done, std::uint64_t total));

/// Compares every object of an open pool, on which no transaction runs, with its type, its header and the pointers of all others. What
/// cannot be reached from the root is a remark. Errors: no_memory.
[[nodiscard]] Result<void> examine_objects(BreezePool& pool, Findings& findings);

}  // namespace stillpoint::breeze
