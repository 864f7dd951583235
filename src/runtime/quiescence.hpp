#pragma once
// Quiescence: runs a function while no thread is inside a FASE, without ever deadlocking.

#include <cstdint>

namespace stillpoint {

struct StopReport {
    bool reached = false;          ///< false: withdrawn, `stopped` was not called
    std::uint64_t wait_ns = 0;     ///< from shutting the gate to the last thread's release
    std::uint64_t stopped_ns = 0;  ///< time inside `stopped`
    std::uint64_t begun_ns = 0;    ///< os::monotonic_ns() when the gate was shut
    std::uint64_t opened_ns = 0;   ///< when it was opened
    int blocker_thread_id = 0;     ///< withdrawn: a thread that was inside at the deadline
    const void* blocker_lock = nullptr;  ///< and its outermost lock (nullptr: sp_fase_begin or a heap call)
};

/// Shuts the gate, waits until no thread is inside a FASE, calls stopped(context), opens the gate.
/// Newcomers are held at their outermost acquire meanwhile. If quiescence is not reached within
/// `attempt_ns` the attempt is withdrawn: held threads go on, and the caller tries again later
/// with back-off (a thread inside may be busy-waiting for one that is held).
/// The wait yields, then sleeps on a futex; it never spins. `stopped` runs on the calling
/// thread, which must be outside a FASE; it must not acquire intercepted locks or call malloc
/// (a held thread may hold malloc's lock).
/// Threads: one caller at a time (the engine's checkpoint thread).
[[nodiscard]] StopReport stop_threads(std::uint64_t attempt_ns, void (*stopped)(void*), void* context) noexcept;

/// How long the program was stopped: until the last thread that was held ran again; as far as that is known, so best asked some time
/// after. The caller may lose the CPU to a thread that it has released: the time that it then waits does not count.
[[nodiscard]] std::uint64_t stop_length_ns(const StopReport& stop) noexcept;

}  // namespace stillpoint
