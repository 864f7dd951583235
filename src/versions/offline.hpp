#pragma once
// Looks at a pool that no program has open: `stillpoint info` and `stillpoint check`.

#include "pool/pool.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::versions {

/// EngineDriver::inspect. `has_delta_log`: so has the engine's format of the pool.
[[nodiscard]] Result<RecoveryReport> inspect_pool(const Pool& pool, bool has_delta_log);
[[nodiscard]] inline Result<RecoveryReport> inspect_pool(const Pool& pool) { return inspect_pool(pool, false); }

/// EngineDriver::check.
[[nodiscard]] Result<RecoveryReport> check_pool(const Pool& pool, bool has_delta_log, Findings* findings,
                                                Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes),
                                                void* context, void (*progress)(std::uint64_t done, std::uint64_t total));
[[nodiscard]] Result<RecoveryReport> check_pool(const Pool& pool, Findings* findings,
                                                Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes),
                                                void* context, void (*progress)(std::uint64_t done, std::uint64_t total));

}  // namespace stillpoint::versions
