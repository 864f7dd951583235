#pragma once
// The descriptions of the types of the program's durable data (type_text.hpp) that a pool keeps: a block of the heap, which the image
// header names. `stillpoint run` reads them from the debug information of the program that it starts, and says them in an environment
// variable.

#include "core/findings.hpp"
#include "core/result.hpp"
#include "heap/heap.hpp"

namespace stillpoint {

/// Set by `stillpoint run`; the text of type_text.hpp.
inline constexpr const char* types_variable = "STILLPOINT_TYPE_DESCRIPTIONS";

/// Compares what the program says of its types with what the pool keeps, which gets it where they agree. `has_steps`: the data are still
/// those of another layout, so that nothing is compared, and nothing kept. `accept`: differences are a warning. Call after the heap is
/// attached, with the options it has, and before Engine::run(). Errors: layout (names the member), pool_corrupt, no_memory, pool_full.
[[nodiscard]] Result<void> settle_types(Heap& heap, const Heap::Options& sound, bool has_steps, bool accept);

/// The text that the pool keeps, as a start reads it; empty: none. Errors: pool_corrupt.
[[nodiscard]] Result<std::string> kept_type_text(const Heap::Options& heap);

}  // namespace stillpoint
