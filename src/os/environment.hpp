#pragma once
// The environment, as far as this process may believe it. A program that has more rights than its caller (set-uid,
// set-gid, file capabilities: the kernel says so in AT_SECURE) gets its environment from a user that must not command
// it: nothing is read from there. Every look at a variable goes through here.
//
// The vector itself is read and changed: shells have functions called getenv and setenv of their own, which know
// nothing before main.

namespace stillpoint::os {

/// True where the caller has set the environment and has fewer rights than this process.
[[nodiscard]] bool environment_is_foreign() noexcept;

/// The value of a variable; nullptr where there is none, or where the environment is foreign.
[[nodiscard]] const char* environment_variable(const char* name) noexcept;

/// Puts `text` ("NAME=value", kept by the caller forever) into the environment, in the place of a variable of that name.
/// Before main only: other threads may read the vector. False: no memory.
bool put_environment_variable(char* text) noexcept;

}  // namespace stillpoint::os
