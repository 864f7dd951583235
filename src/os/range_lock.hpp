#pragma once
// Locks on single bytes of a file, of an open file and not of a process (open file description locks). The kernel releases them when the
// open file is closed, however its process ends. The bytes lie far after the end of any file, where no program locks.

#include <cstdint>

namespace stillpoint::os {

/// Numbers are the distance from a fixed place, and part of the protocol between processes. file_lock.hpp has byte 0.
enum class LockByte : std::uint8_t {
    queued_writes = 0,   ///< file_lock.hpp
    holds_honoured = 1,  ///< the process that has the pool open: it asks for holds before it writes
    hold = 2,            ///< a copier: begin no writes
    writing = 3,         ///< the process that has the pool open writes; a copier, shared: it does not
};

/// Takes the lock without waiting; a shared one needs `fd` to be readable, an exclusive one writable. 0 or the errno: EAGAIN or EACCES
/// where another open file has it.
[[nodiscard]] int try_lock_byte(int fd, LockByte byte, bool exclusive) noexcept;
void unlock_byte(int fd, LockByte byte) noexcept;
/// Another open file has a lock that an exclusive one (`exclusive`) or a shared one would have to wait for. False where the file system
/// has no such locks.
[[nodiscard]] bool is_byte_locked(int fd, LockByte byte, bool exclusive) noexcept;

}  // namespace stillpoint::os
