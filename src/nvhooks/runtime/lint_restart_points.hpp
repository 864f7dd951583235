#pragma once
// The rules of restart points, as `stillpoint lint` holds them against a run:
//   - A variable whose first access after some restart point is a read, and that the thread writes later, is logged.
//   - Any other durable store is tracked: add_modified says so between the same two restart points.
//   - No restart point lies inside a critical section.
//   - A call that may block lies between checkpoint_allow and checkpoint_prevent.
//
// Threads: any; each has its own tables. No malloc.

#include <cstddef>
#include <cstdint>

namespace stillpoint::lint {

/// Once, before the first note.
void begin_restart_points() noexcept;

/// The bytes are about to be read, and were written, by the code that `caller` returns to.
void note_read_between_restart_points(const void* address, std::size_t size_bytes, const void* caller) noexcept;
void note_write_between_restart_points(const void* address, std::size_t size_bytes, const void* caller) noexcept;
/// `function` is about to be called.
void note_blocking_call(const char* function, std::uintptr_t first_argument, const void* caller) noexcept;

/// The calling thread ends, or the program does: as at a restart point.
void end_of_restart_points_thread() noexcept;

}  // namespace stillpoint::lint
