#pragma once
// The objects of a pool that is not open, for `stillpoint info` and `stillpoint check`.

#include "core/findings.hpp"
#include "core/result.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::pronto {

/// EngineDriver::visit_objects.
[[nodiscard]] Result<void> visit_objects(const Pool& pool, const std::byte* base, std::uint64_t image_bytes, Findings& findings,
                                         void (*visit)(void* context, const ObjectFacts& object), void* context);

}  // namespace stillpoint::pronto
