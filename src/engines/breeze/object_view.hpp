#pragma once
// The objects of a pool at rest, with their fields, as `stillpoint dump` shows them.

#include "runtime/engine.hpp"

namespace stillpoint::breeze {

/// EngineDriver::show_objects.
[[nodiscard]] Result<ObjectFigures> show_objects(const Pool& pool, const ObjectRequest& request, Findings& findings,
                                                 void (*show)(void* context, const ShownObject& object), void* context);

}  // namespace stillpoint::breeze
