#pragma once
// Stops of pools that are open beside each other: one at a time, since all have the one gate of the process.

#include <cstdint>

#include "runtime/quiescence.hpp"

namespace stillpoint {

/// Waits until no other pool is in a stop or an attempt at one, then as stop_threads(). Threads: one for each pool.
[[nodiscard]] StopReport stop_threads_in_turn(std::uint64_t attempt_ns, void (*stopped)(void*), void* context) noexcept;

/// In a child made by fork, whose parent's checkpoint threads are gone.
void stop_turns_reset_after_fork() noexcept;

}  // namespace stillpoint
