#pragma once
// SP_PERSISTENT variables: the program's own globals, kept durable where they are.
//
// The image has a copy of each module's section, and a table of the variables in it (durable_globals_table.hpp); at
// each stop the engine copies what changed into it, and after a restart each variable's value is put back before
// main, wherever this build of the program has it. The addresses are not the same in each run: so durable memory must
// not point to them.

#include "core/result.hpp"
#include "heap/heap.hpp"
#include "runtime/engine.hpp"

namespace stillpoint {

/// Restores the variables of the modules loaded now from the image, by their names (durable_globals_match.hpp), and has the
/// engine mirror their sections. What the program no longer has stays in the image. Call after the heap is attached, with the
/// options it has, and before Engine::run(). `accept`: what cannot be matched begins with its initial value, with a warning.
/// Errors: globals_changed (names what cannot be matched), pool_corrupt, no_memory, pool_full, invalid_argument (too many modules).
[[nodiscard]] Result<void> restore_durable_globals(Engine& engine, Heap& heap, const Heap::Options& sound, bool accept);

/// The program, or a library that is loaded now, has SP_PERSISTENT variables. Start-up only: reads files.
[[nodiscard]] bool has_durable_globals();

}  // namespace stillpoint
