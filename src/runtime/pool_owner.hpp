#pragma once
// Which process has the pool that the environment names: one opens it, and what that starts stays out.

#include <sys/types.h>

namespace stillpoint {

/// The variable that names the pool.
inline constexpr const char* pool_variable = "STILLPOINT_POOL";
/// The process that `stillpoint run` became.
inline constexpr const char* run_variable = "STILLPOINT_RUN";

/// The process id in a variable; 0: none.
[[nodiscard]] pid_t process_in(const char* variable) noexcept;

/// Unless this process is what the owner became by exec.
[[nodiscard]] bool owned_by_another_process() noexcept;

/// True in every program but the first one that `stillpoint run` starts. Called before reserve_owner_variable().
[[nodiscard]] bool is_later_program_of_run() noexcept;

/// Puts the owner's variable, without an owner, into the environment: before the program has threads. announce_owner() then fills it in.
void reserve_owner_variable() noexcept;
/// Descendants of this process by fork and exec stay out from here on. Async-signal-safe.
void announce_owner() noexcept;

/// Says once, in a program that was started by one that has the pool open, that nothing is durable here.
void warn_if_owned_elsewhere() noexcept;

}  // namespace stillpoint
