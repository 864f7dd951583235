#pragma once
// The collector's barrier: between the clearing of cards (core/store_marks.hpp) and the copies, while the program runs.

#include "os/thread_calls.hpp"

namespace stillpoint::os {

/// A thread that stored, and found its card still set, has its store seen by the copies that follow.
inline void order_copies_after_clear() noexcept { membarrier(); }

}  // namespace stillpoint::os
