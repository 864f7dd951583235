#pragma once
// Threads as processes: pthread_create and what takes a pthread_t.

#include "engines/nvthreads/processes/control_area.hpp"
#include "runtime/session_process.hpp"

namespace stillpoint::nvthreads::processes {

/// The calls that the interposer is to make in place of libc's.
[[nodiscard]] std::span<const session_process::ReplacedCall> replaced_lock_calls() noexcept;
[[nodiscard]] std::span<const session_process::ReplacedCall> replaced_other_calls() noexcept;

/// The slot is done with: another thread may get it. Under threads_lock or by the supervisor, which holds it.
void free_slot_if_done(ControlArea& area, std::uint32_t index) noexcept;

/// This process ends with the supervisor. False: that has ended.
[[nodiscard]] bool die_with_supervisor(pid_t supervisor) noexcept;

}  // namespace stillpoint::nvthreads::processes
