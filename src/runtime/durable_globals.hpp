#pragma once
// SP_PERSISTENT variables: the program's own globals, kept durable where they are.
//
// The image has a copy of each module's section; at each stop the engine copies what changed
// into it, and after a restart the copy is put back before main. The variables keep their
// addresses, which are not the same in each run: so durable memory must not point to them.

#include "core/result.hpp"
#include "runtime/engine.hpp"

namespace stillpoint {

class Heap;

/// Restores the sections of the modules loaded now from the image and has the engine mirror
/// them. Call inside a FASE, after the heap is attached and before Engine::run().
/// Errors: globals_changed (a section has another layout than the one in the pool), no_memory,
///   pool_full, invalid_argument (too many modules).
[[nodiscard]] Result<void> restore_durable_globals(Engine& engine, Heap& heap);

/// The program, or a library that is loaded now, has SP_PERSISTENT variables. Start-up only: reads files.
[[nodiscard]] bool has_durable_globals();

}  // namespace stillpoint
