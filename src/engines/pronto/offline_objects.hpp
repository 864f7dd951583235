#pragma once
// The objects of a pool that is not open, for `stillpoint info` and `stillpoint check`.

#include "runtime/engine_facts.hpp"

namespace stillpoint::pronto {

/// One row for each object: its size without what it has allocated, the commit numbers of its snapshot and of its log's end, the
/// operations that the next start runs again, the bytes of their arguments, and an estimate of their time, from operations that were timed.
extern const EngineFacts object_facts;

}  // namespace stillpoint::pronto
