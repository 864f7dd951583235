#pragma once
// Option check_commit_order: finds operations that commit in another order than they have held a lock [Pronto equation 5.1]. After a crash
// they would be run again in the order of their commits, which is not the one they had.

#include <cstdint>

#include "engines/pronto/thread_log.hpp"

namespace stillpoint::pronto::commit_order {

/// Begins to watch locks. Every acquire and release is slower from then on.
void begin() noexcept;

/// The thread's operation is about to commit: reports one that held a lock before it and has not committed yet.
void committing(const Operation& operation) noexcept;
/// The operation has committed, or will not.
void finished(const Operation& operation) noexcept;

/// How many were reported.
[[nodiscard]] std::uint64_t reported() noexcept;

}  // namespace stillpoint::pronto::commit_order
