#pragma once
// The functions that tools call on a pool that no process has open.

#include "core/findings.hpp"
#include "core/result.hpp"
#include "pool/pool.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::respct {

[[nodiscard]] Result<RecoveryReport> inspect_pool(const Pool& pool);
[[nodiscard]] Result<RecoveryReport> check_pool(const Pool& pool, Findings* findings,
                                                Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes),
                                                void* context, void (*progress)(std::uint64_t done, std::uint64_t total));

}  // namespace stillpoint::respct
