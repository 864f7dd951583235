#pragma once
// The engines of this program. registry.cpp lists those of the library; a program that links with its objects and defines
// engine_drivers() itself has other ones.

#include <span>
#include <string_view>

#include "runtime/engine.hpp"

namespace stillpoint {

/// All registered engines; the first is what a new pool has where none is named.
[[nodiscard]] std::span<const EngineDriver> engine_drivers() noexcept;
[[nodiscard]] const EngineDriver* find_engine(std::string_view name) noexcept;

}  // namespace stillpoint
