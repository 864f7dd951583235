// The explored files know engines by the registry's table only, and here none runs.

#include "runtime/engine.hpp"

namespace stillpoint {

std::span<const EngineDriver> engine_drivers() noexcept { return {}; }

}  // namespace stillpoint
