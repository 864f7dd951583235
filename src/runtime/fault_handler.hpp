#pragma once
// SIGSEGV for trackers that protect pages, SIGBUS for memory that is gone, and the program's own handlers behind ours.
//
// While installed, the program's sigaction for that signal is kept here and called for every fault that is its
// own, with the semantics the program asked for (SA_SIGINFO, SA_RESETHAND, sa_mask).
// One difference: the signal stays unblocked in the program's handler, because that may use durable memory too.

#include <csignal>

#include "core/result.hpp"

namespace stillpoint {

/// True: handled, the instruction can run again. Async-signal-safe.
using FaultHandler = bool (*)(void* address) noexcept;

/// The instruction whose fault the calling thread's FaultHandler is asked about; nullptr where this CPU's is not known.
[[nodiscard]] const void* faulting_instruction() noexcept;

/// Puts `handler` before whatever the program has for `number` (SIGSEGV or SIGBUS) now, and unblocks that in the calling
/// thread. Install before pages are protected. Installing again replaces `handler` only. Errors: io (the system refused).
[[nodiscard]] Result<void> fault_handler_install(int number, FaultHandler handler);
/// False for every other signal.
[[nodiscard]] bool fault_handler_installed(int number) noexcept;

/// A handler for SIGSEGV and SIGBUS may be installed later: threads that the program makes until then must not block them. Before the
/// program has threads.
void expect_fault_handlers() noexcept;
/// True: a handler is installed or expected for that signal.
[[nodiscard]] bool fault_signal_stays_unblocked(int number) noexcept;

/// Whether a thread that returns from a handler of SIGSEGV continues with the registers that it had at the fault: causes
/// one fault and looks. False under valgrind unless it is told to keep them; every tracker that protects pages would
/// then damage what the program writes. Leaves a handler installed for fault_handler_install to replace.
/// Errors: unsupported (they are not kept); io; no_memory.
[[nodiscard]] Result<void> check_faults_keep_registers();

/// sigaction(number, wanted, previous) as the program sees it. Either may be null.
/// The handler must be installed.
void fault_handler_exchange(int number, const struct sigaction* wanted, struct sigaction* previous) noexcept;

}  // namespace stillpoint
