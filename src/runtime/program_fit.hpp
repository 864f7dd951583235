#pragma once
// Whether durable memory can work in this program at all.

#include "core/result.hpp"

namespace stillpoint {

/// Refuses, with what to do: programs under ThreadSanitizer or MemorySanitizer, which keep the window's addresses for
/// themselves, so that a program would be ended by its own mmap; and programs whose locks are not seen. Errors: unsupported.
[[nodiscard]] Result<void> check_program_fits();

/// The interposer: the program's calls go to the C library and past this one.
void note_locks_are_unseen() noexcept;

}  // namespace stillpoint
