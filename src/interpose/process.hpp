#pragma once
// The state of the process that the shims of this folder share.

namespace stillpoint::interpose {

/// Remembers the calling process as the one whose session may be ended by exit and exec. Called
/// by the constructor, and in each child of fork. A child of vfork shares this process's memory and must not
/// end its session: it has another process id.
void remember_home_process() noexcept;

[[nodiscard]] bool is_home_process() noexcept;

/// Registers what fork, exit, and quick_exit must do. Once, in the constructor: handlers that are
/// registered first run last at exit, after the program's and every library's own.
void register_process_handlers() noexcept;

/// The calling thread is another one now: a child's.
void forget_thread_id() noexcept;

}  // namespace stillpoint::interpose
