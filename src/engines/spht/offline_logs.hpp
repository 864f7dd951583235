#pragma once
// The logs of a pool that is not open, for `stillpoint info` and `stillpoint check`.

#include "runtime/engine.hpp"

namespace stillpoint::spht {

/// EngineDriver::check: page copies, markers and logs; `visit_image` sees the image with the logs applied.
[[nodiscard]] Result<RecoveryReport> check_pool(const Pool& pool, Findings* findings,
                                                Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes),
                                                void* context, void (*progress)(std::uint64_t done, std::uint64_t total));

/// One row for each log: whose it was, its transactions that the page copies lack, and how far it reaches.
extern const EngineFacts log_facts;

}  // namespace stillpoint::spht
