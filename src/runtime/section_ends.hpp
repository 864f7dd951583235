#pragma once
// Section ends: an engine whose sections become durable one by one is told before other threads can see what a thread has stored, and
// after its outermost lock is released.
//
// A release is told before it happens: what the thread stored while it held the lock is then in the engine's hands before the next owner
// reads it. While no engine asks, this costs nothing: a bit of the gate, which is read anyway, leads here.

#include "runtime/fase_gate.hpp"

namespace stillpoint::section_ends {

/// From here on other threads may see what the calling thread has stored.
enum class Handover : std::uint8_t {
    section_ends,  ///< its outermost lock is about to be released
    inside,        ///< another one is, or a thread is about to be woken, and the section goes on
    outside,       ///< the thread is in no section
    call_ends,  ///< a call of the library, which was a section of its own, has ended: others have seen no more than it has told itself
};

/// Any thread; no malloc.
struct Calls {
    void (*hand_over)(Handover handover) noexcept;
    /// The outermost lock is released, or the section has ended: the thread holds no lock, and may wait.
    void (*ended)() noexcept;
};

/// One engine at a time, before threads of the program run. `calls` lives until the process ends.
void want(const Calls& calls) noexcept;
void want_nothing() noexcept;

[[nodiscard]] inline bool are_told() noexcept { return (fase::gate.bits.load(std::memory_order_relaxed) & fase::section_ends_told) != 0; }

/// `lock` is about to be released by the thread that holds it.
void tell_release(const void* lock) noexcept;
/// A thread is about to be made or woken, by a call that releases no lock.
void tell_wakeup() noexcept;
/// A release has returned, and the accounting knows of it.
void tell_ended() noexcept;

// For fase.cpp: the calling thread's section without a lock ends, or is paused.
void tell_section_ends() noexcept;

}  // namespace stillpoint::section_ends
