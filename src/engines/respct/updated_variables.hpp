#pragma once
// State of each logged variable for the checks of debug builds, in DRAM: whether it was initialised since its block was allocated, and
// which threads updated it under which locks, after Eraser [Savage et al., TOCS 1997]: one thread may update as it likes; from the
// second on the locks common to all updates must not become none. Threads that have ended count no more.
//
// Threads: any, under one lock. No malloc: a table in reserved address space, 32 bytes for each 16 of durable memory, paid where touched.

#include <cstddef>
#include <cstdint>

namespace stillpoint::updated_variables {

/// A line of the program.
struct Line {
    const char* file;
    unsigned number;
};

/// The error of an update or an init; file nullptr: nothing. Otherwise the line of the one that it is in conflict with.
using Conflict = Line;

/// False: there is no address space for the table, and nothing is found.
bool begin() noexcept;

/// An update by the calling thread. Conflict: it and another thread's share no lock.
[[nodiscard]] Conflict update(const void* variable, Line line) noexcept;
/// An init by the calling thread. Conflict: it was initialised already.
[[nodiscard]] Conflict init(const void* variable, Line line) noexcept;
/// The memory is new: nothing is known of it.
void forget(const void* begin, std::size_t size_bytes) noexcept;

}  // namespace stillpoint::updated_variables
