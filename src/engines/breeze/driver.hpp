#pragma once
// The engine's entry for the registry: what offline tools call. Programs open pools by breeze.h.

#include "runtime/engine.hpp"

namespace stillpoint::breeze {

[[nodiscard]] EngineDriver driver() noexcept;

}  // namespace stillpoint::breeze
