#pragma once
// The parts of this program that work with limits.

namespace stillpoint {

/// Warns, once in a process, of code of Go, whose system calls and locks are not seen, and counts the modules that have it.
void tell_limits_of_program() noexcept;

}  // namespace stillpoint
