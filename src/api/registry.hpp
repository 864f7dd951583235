#pragma once
// The engines of this program. registry.cpp lists those of the library; a program that links with its objects and defines
// these functions itself has other ones.

#include <span>
#include <string_view>

#include "runtime/engine.hpp"

namespace stillpoint {

/// The engines that sp_open and `stillpoint run` open; the first is what a new pool has where none is named.
[[nodiscard]] std::span<const EngineDriver> engine_drivers() noexcept;
/// These, and after them the engines whose pools programs open by functions of their own (EngineDriver::opened_by).
[[nodiscard]] std::span<const EngineDriver> every_engine_driver() noexcept;
/// nullptr: no engine has that name, sessions or not.
[[nodiscard]] const EngineDriver* find_engine(std::string_view name) noexcept;

}  // namespace stillpoint
