#pragma once
// FASE accounting: the fast path of every intercepted lock, and what a checkpoint needs of it.
//
// A thread publishes "inside" at its outermost acquire, before it acquires, and "outside" after
// the matching release. publish-and-check: the thread stores `inside`, then loads the gate; the
// checkpointer stores the gate, runs membarrier, then loads every `inside`. One of the two sees
// the other, and the thread pays no fence. Threads outside a FASE are never waited for.
// docs/internals/quiescence.md has the argument; fase_gate.hpp the inlined form that the interposer uses.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"

namespace stillpoint {

struct ThreadRecord;  // thread_registry.hpp

/// Starts or continues a FASE because `lock` is about to be acquired. Held here while the gate is shut, if outermost.
void fase_enter(const void* lock) noexcept;
/// Undoes a fase_enter whose acquire failed, and ends what fase_enter began after a release.
void fase_leave(const void* lock) noexcept;
/// sp_fase_begin's work: fase_enter(nullptr), by the program and not by a call of the runtime.
void fase_enter_section() noexcept;
/// Inside: what the thread does now is delimited, where an engine has other sections than locks.
void fase_note_section() noexcept;
/// sp_fase_pause's work: the calling thread, whatever locks it holds, counts as outside. They nest.
void fase_pause() noexcept;
/// sp_fase_resume's: inside again, as it was. Held here while the gate is shut.
void fase_resume() noexcept;
/// fase_resume, or false, and nothing is changed, while the gate is shut.
[[nodiscard]] bool fase_try_resume() noexcept;
/// True if the calling thread is inside a FASE.
[[nodiscard]] bool inside_fase() noexcept;

/// How the checkpointer's look at other threads is ordered with their stores.
enum class FaseBarrier {
    automatic,  ///< membarrier where the kernel has it, otherwise as `fences`
    fences,     ///< a full fence in every outermost acquire and release
};

/// Starts the accounting: before it every function here returns at once. Locks that are held by
/// then are not counted. Calling it again is allowed. Errors: no_memory (no thread key left).
[[nodiscard]] Result<void> fase_activate(FaseBarrier barrier = FaseBarrier::automatic);
/// Threads that begin afterwards are not counted; the others go on counting, and the counts are not read.
void fase_deactivate() noexcept;
/// In a child after fork: only the calling thread exists; the gate is open; accounting is off.
void fase_reset_after_fork() noexcept;

/// sp_lock_ignore's work: holding `lock` is no FASE any more. Errors: invalid_argument (nullptr),
/// no_memory (1024 locks are ignored already).
[[nodiscard]] Result<void> fase_ignore_lock(const void* lock);
/// As fase_ignore_lock for every lock, while the accounting is on: what is failure-atomic is told by other means. Before threads of the
/// program run.
void fase_count_no_locks() noexcept;
/// A destroyed lock's address may become another lock's: that one is counted again.
void fase_forget_lock(const void* lock) noexcept;
/// Forgets every lock in [address, + size) of durable memory, which is about to be freed.
void fase_forget_locks(const void* address, std::size_t size) noexcept;

/// Called on each attached thread when it ends, inside no FASE unless the thread left locks
/// after: the session gives the heap's cache back there. nullptr: nothing. Set it before threads run.
void set_thread_exit_hook(void (*hook)() noexcept) noexcept;

/// RAII: a call into the heap or the directory is a FASE of its own.
class FaseGuard {
public:
    FaseGuard() noexcept { fase_enter(nullptr); }
    ~FaseGuard() { fase_leave(nullptr); }
    FaseGuard(const FaseGuard&) = delete;
    FaseGuard& operator=(const FaseGuard&) = delete;
};

}  // namespace stillpoint
