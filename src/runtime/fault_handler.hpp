#pragma once
// The SIGSEGV handler for trackers that protect pages, and the program's own handler behind it.
//
// While installed, the program's sigaction for SIGSEGV is kept here and called for every fault that the
// tracker did not raise, with the semantics the program asked for (SA_SIGINFO, SA_RESETHAND, sa_mask).
// One difference: SIGSEGV stays unblocked in the program's handler, because that may write durable memory too.

#include <csignal>

#include "core/result.hpp"

namespace stillpoint {

/// True: handled, the instruction can run again. Async-signal-safe.
using FaultHandler = bool (*)(void* address) noexcept;

/// Puts `handler` before whatever the program has for SIGSEGV now. Install before pages are
/// protected. Installing again replaces `handler` only. Errors: io (the system refused).
[[nodiscard]] Result<void> fault_handler_install(FaultHandler handler);
[[nodiscard]] bool fault_handler_installed() noexcept;

/// sigaction(SIGSEGV, wanted, previous) as the program sees it. Either may be null.
/// Only while installed.
void fault_handler_exchange(const struct sigaction* wanted, struct sigaction* previous) noexcept;

}  // namespace stillpoint
