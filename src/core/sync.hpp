#pragma once
// The names by which the quiescence protocol (runtime/quiescence.cpp, fase.cpp, fase_gate.hpp, thread_registry.cpp,
// ignored_locks.cpp, plain_mutex.hpp, os/futex.hpp) reaches memory that threads share. They are the standard's own
// and cost nothing. tests/schedules compiles the same files against another header of this name, in which each
// access is a point where the schedule explorer may let another thread go on.

#include <atomic>

namespace stillpoint::sync {

template <class T>
using Atomic = std::atomic<T>;

template <class T>
using AtomicRef = std::atomic_ref<T>;

[[gnu::always_inline]] inline void fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }

/// Holds the compiler, not the CPU.
[[gnu::always_inline]] inline void compiler_fence(std::memory_order order) noexcept { std::atomic_signal_fence(order); }

}  // namespace stillpoint::sync
