#pragma once
// The objects of a pool at rest, with their fields, as `stillpoint dump` shows them, and the memory that `stillpoint debug` shows.

#include <span>
#include <string>

#include "engines/breeze/types.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::breeze {

/// EngineDriver::show_objects.
[[nodiscard]] Result<ObjectFigures> show_objects(const Pool& pool, const ObjectRequest& request, Findings& findings,
                                                 void (*show)(void* context, const ShownObject& object), void* context);

/// EngineDriver::show_memory.
[[nodiscard]] Result<void> show_memory(const Pool& pool, Findings& findings, void (*show)(void* context, std::span<const std::byte> memory),
                                       void* context, void (*progress)(std::uint64_t done, std::uint64_t total));

/// The name of the pointer of that run at a place of an object of `size` bytes, as the program would write it.
[[nodiscard]] std::string name_of_pointer(const Type& type, std::uint64_t size, std::uint64_t place, const PointerRun& run);

}  // namespace stillpoint::breeze
