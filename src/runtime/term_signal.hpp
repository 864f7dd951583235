#pragma once
// Option on_term=checkpoint: SIGTERM makes a last piece of work happen before it ends a program that has no handler of its own for it.
//
// The program sees the default action where this handler is. A handler of the program's takes its place, and SIG_IGN does; when the program
// sets the default action again, this handler comes back. The handler itself wakes a thread of the runtime and does no more.

#include <csignal>
#include <cstdint>

#include "core/result.hpp"

namespace stillpoint::term_signal {

/// From now on. `last_work` runs once, on a thread of the runtime; after it, or `limit_ms` later, the process ends by SIGTERM. A program
/// that blocks the signal, and waits for it or reads it, keeps it. Calling again changes nothing. Errors: no_memory; io.
[[nodiscard]] Result<void> take_over(void (*last_work)() noexcept, std::uint64_t limit_ms);

/// False for every other signal.
[[nodiscard]] bool is_taken_over(int number) noexcept;

/// sigaction as the program sees it; either may be null. As libc: 0, or -1 and errno.
int exchange(int number, const struct sigaction* wanted, struct sigaction* previous) noexcept;
/// After a call of libc that has set the handler of `number` in another way than by sigaction: what the program sees as the one before.
[[nodiscard]] sighandler_t after_setting(int number, sighandler_t previous) noexcept;

/// A child made by fork has no pool: SIGTERM is its own again.
void reset_after_fork() noexcept;

}  // namespace stillpoint::term_signal
