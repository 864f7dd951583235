#pragma once
// ControlArea: the memory that the supervisor and the processes of the program's threads share besides the program's own. It holds no
// pointer into the private memory of a process.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

#include "core/result.hpp"
#include "engines/nvthreads/processes/redo_ring.hpp"
#include "engines/nvthreads/processes/shared_futex.hpp"
#include "engines/nvthreads/processes/sync_table.hpp"
#include "engines/nvthreads/processes/thread_keys.hpp"

namespace stillpoint::nvthreads::processes {

inline constexpr std::uint32_t threads_max = 512;
/// A lock's holder in the supervisor.
inline constexpr std::uint32_t supervisor_number = threads_max + 1;

enum class ThreadState : std::uint32_t {
    unused,
    starting,
    running,
    ended,  ///< its value is known; joined or detached, it becomes unused when its process has ended, too
};

/// A call that the supervisor makes for a thread: a function of this library and what it needs.
struct CallPlace {
    static constexpr std::size_t bytes_max = 2048;
    static constexpr std::size_t message_bytes_max = 512;
    SharedWord answered;
    int error_number;
    char message[message_bytes_max];  ///< of sp_last_error, if the call has left one
    void (*run)(void* bytes);
    alignas(16) std::byte bytes[bytes_max];
};

struct ThreadSlot {
    SharedWord state;       ///< of ThreadState; futex of those that join
    SharedWord is_detached;
    SharedWord is_joined;
    SharedWord request;     ///< futex of the process's second thread: cancel, or the program's thread has ended
    std::atomic<pid_t> process;  ///< 0: it has ended
    std::atomic<int> thread_id;  ///< of the kernel, of the program's thread
    std::atomic<std::uintptr_t> self;  ///< its pthread_t
    SharedWord has_handed_over;  ///< its section is not over, and others may have seen a part of it
    std::atomic<std::uint32_t> exit_asked;  ///< it has called exit, or _exit: the program ends with its process's exit status
    void* value;
    void* (*start)(void*);
    void* argument;
    HeldLocks held;
    CallPlace call;
};

struct ControlArea {
    OwnedLock commit_lock;   ///< merges are one after the other
    std::atomic<std::uint64_t> merges;  ///< so many were made
    RedoRing ring;

    // Durability: positions of the ring.
    std::atomic<std::uint64_t> wanted;   ///< a thread waits for it
    SharedWord wanted_signal;
    std::atomic<std::uint64_t> durable;
    std::atomic<std::uint64_t> let_go;  ///< unlocks up to it may return though they are not durable: another thread's section does not end
    SharedWord durable_signal;
    SharedWord is_throttled;  ///< acknowledge=order: what is being written is too old, and unlocks wait
    SharedWord has_failed;  ///< nothing becomes durable any more

    OwnedLock threads_lock;
    SharedWord threads_alive;  ///< futex of a main thread that has called pthread_exit
    pid_t supervisor;
    std::uintptr_t stacks;  ///< the first address of the threads' stacks
    std::uint32_t threads_used;  ///< slots from 0 that were ever used
    ThreadKeys keys;
    SyncTable sync;
    std::array<ThreadSlot, threads_max> threads;

    /// Waits until the ring up to `position` is durable, or `or_let_go` says that an unlock may return without, or durability has failed.
    /// False: the deadline was first. Any process.
    [[nodiscard]] bool await_durable(std::uint64_t position, bool or_let_go, std::uint64_t deadline_ns) noexcept;
};

/// Memory that a fork shares. Errors: no_memory.
[[nodiscard]] Result<ControlArea*> make_control_area();

}  // namespace stillpoint::nvthreads::processes
