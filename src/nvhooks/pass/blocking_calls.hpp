#pragma once
// Calls that may block, for layers that want to be told of them.

#include "scope.hpp"

namespace stillpoint::nvhooks {

/// A hook before each call of a function that the layer lists under `blocking`. Returns how many.
unsigned emit_blocking_calls(FunctionScope& scope);

}  // namespace stillpoint::nvhooks
