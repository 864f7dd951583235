#pragma once
// FASE accounting: the fast path of every intercepted lock, and what a checkpoint needs of it.
//
// A thread publishes "inside" at its outermost acquire, before it acquires, and "outside" after
// the matching release. publish-and-check: the thread stores `inside`, then loads the gate; the
// checkpointer stores the gate, runs membarrier, then loads every `inside`. One of the two sees
// the other, and the thread pays no fence. Threads outside a FASE are never waited for.

#include <atomic>
#include <cstdint>

namespace stillpoint {

struct ThreadRecord;  // thread_registry.hpp

/// Starts or continues a FASE because `lock` is about to be acquired. Held here while the gate is shut, if outermost.
void fase_enter(const void* lock) noexcept;
/// Takes back a fase_enter whose acquire failed, and ends what fase_enter began after a release.
void fase_leave(const void* lock) noexcept;
/// True if the calling thread is inside a FASE.
[[nodiscard]] bool inside_fase() noexcept;

/// RAII: a call into the heap or the directory is a FASE of its own.
class FaseGuard {
public:
    FaseGuard() noexcept { fase_enter(nullptr); }
    ~FaseGuard() { fase_leave(nullptr); }
    FaseGuard(const FaseGuard&) = delete;
    FaseGuard& operator=(const FaseGuard&) = delete;
};

}  // namespace stillpoint
