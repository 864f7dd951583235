#pragma once
// The one-word locks of respct.h, where they have more to do than a compare-and-swap.
//
// A thread that takes part in restart points is inside its FASE anyway, so its locks need no FASE of their own: they are counted only, for
// the rule that none is held at a restart point. Any other thread's lock is a FASE, as an intercepted one is, or it would come to its first
// update with the lock held, and wait there for a checkpoint that waits for the lock.

#include <cstdint>

#include "stillpoint/respct.h"

namespace stillpoint::respct {

/// Bit of sp_respct_locks: the calling thread takes no part in restart points, or its locks are listed for the checks of debug builds.
inline constexpr std::uint32_t locks_go_slowly = std::uint32_t{1} << 31;

/// Small mutexes that the calling thread holds.
[[nodiscard]] inline std::uint32_t locks_counted() noexcept { return sp_respct_locks & ~locks_go_slowly; }

/// Called when the calling thread begins or ceases to take part.
void choose_way_of_locks(bool takes_part) noexcept;
/// The checks want to know the calling thread's locks, from here on.
void list_locks_of_this_thread() noexcept;

}  // namespace stillpoint::respct
