#pragma once
// Looks at a pool that no program has open: `stillpoint info` and `stillpoint check`.

#include "pool/pool.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::versions {

/// EngineDriver::inspect.
[[nodiscard]] Result<RecoveryReport> inspect_pool(const Pool& pool);

/// EngineDriver::check.
[[nodiscard]] Result<RecoveryReport> check_pool(const Pool& pool, Findings* findings,
                                                Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes),
                                                void* context, void (*progress)(std::uint64_t done, std::uint64_t total));

}  // namespace stillpoint::versions
