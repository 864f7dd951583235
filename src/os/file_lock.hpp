#pragma once
// Whole-file locks between processes (flock): they end with the process, however it ends.

#include <string>

namespace stillpoint::os {

enum class LockKind { shared, exclusive };

/// Takes the lock without waiting. 0, or the errno: EWOULDBLOCK where another process has it.
/// The lock belongs to the open file, so that a child made by fork shares it until both closed.
[[nodiscard]] int try_lock_file(int fd, LockKind kind) noexcept;

/// The same, but waits up to two seconds for a lock that no living process seems to hold: the kernel may
/// release what a killed process had locked a moment after its parent was told of its end. A restart
/// right behind a crash must not fail for that. `holder`: who has it, on EWOULDBLOCK, or 0.
[[nodiscard]] int lock_file(int fd, LockKind kind, const std::string& path, int& holder) noexcept;

/// The process that holds the exclusive flock on the file at `path`, by /proc/locks; 0 where
/// nobody does or where it cannot be seen (another pid namespace, no /proc).
[[nodiscard]] int exclusive_lock_holder(const std::string& path) noexcept;

}  // namespace stillpoint::os
