#pragma once
// Whole-file locks between processes (flock): they end with the process, however it ends.

#include <string>

namespace stillpoint::os {

enum class LockKind { shared, exclusive };

/// Takes the lock without waiting. 0, or the errno: EWOULDBLOCK where another process has it.
/// The lock belongs to the open file, so that a child made by fork shares it until both closed.
[[nodiscard]] int try_lock_file(int fd, LockKind kind) noexcept;

/// Locks as above, but waits for a lock that no living process seems to hold, up to two seconds, and up to
/// thirty where its holder is known to be dead: the kernel releases what a killed process had locked a
/// moment after its parent was told of its end, and not before the writes that it had queued have ended. A
/// restart right after a crash must not fail for that. `holder`: the process that has it, on EWOULDBLOCK, or 0.
[[nodiscard]] int lock_file(int fd, LockKind kind, const std::string& path, int& holder) noexcept;

/// Marks an open file through which writes are queued to the kernel (io_uring). Such writes keep the open
/// file alive until they have ended, also after the death of their process, and with it the mark; the
/// lock of try_lock_file is gone by then if it was taken through another opening. 0 or the errno:
/// EAGAIN where another open file of this file has the mark.
[[nodiscard]] int mark_queued_writes(int fd) noexcept;

/// Waits until no open file but `fd` itself has the mark: no write of a dead process is in flight any
/// more. To be called with the lock held. 0, ETIMEDOUT after thirty seconds; 0 at once on file
/// systems that do not have the mark.
[[nodiscard]] int await_queued_writes(int fd) noexcept;

/// The process that holds the exclusive flock on the file at `path`, by /proc/locks; 0 where
/// none does or where it cannot be seen (another pid namespace, no /proc).
[[nodiscard]] int exclusive_lock_holder(const std::string& path) noexcept;

}  // namespace stillpoint::os
