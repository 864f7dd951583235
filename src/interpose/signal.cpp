// SIGTERM, with the option on_term=checkpoint: term_signal.hpp.
// SIGSEGV, while a tracker relies on it, and SIGBUS, while a pool is open: the program's handler is kept behind the
// runtime's, and the signal stays unblocked, also while a pool is to be opened at the first durable use, because the kernel
// ends a process that faults with it blocked. Everything else goes straight to libc.

#include <cerrno>

#include "interpose/event_bytes.hpp"
#include "interpose/real.hpp"
#include "runtime/fault_handler.hpp"
#include "runtime/kernel_call.hpp"
#include "runtime/term_signal.hpp"

// Old programs call what headers now call deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

using stillpoint::events_bytes;
using stillpoint::fault_handler_installed;
using stillpoint::fault_signal_stays_unblocked;
using stillpoint::fd_set_bytes;
using stillpoint::KernelCall;
namespace term_signal = stillpoint::term_signal;

/// `set` without the signals that must stay unblocked, in `storage` where there is one.
const sigset_t* without_ours(int how, const sigset_t* set, sigset_t& storage) noexcept
{
    if (set == nullptr || how == SIG_UNBLOCK) {
        return set;
    }
    const sigset_t* result = set;
    for (const int number : {SIGSEGV, SIGBUS}) {
        if (fault_signal_stays_unblocked(number) && sigismember(result, number) == 1) {
            storage = *result;
            sigdelset(&storage, number);
            result = &storage;
        }
    }
    return result;
}

/// A BSD mask without our signals; such masks which have the first 32 signals only.
int without_ours(int mask) noexcept
{
    for (const int number : {SIGSEGV, SIGBUS}) {
        if (fault_signal_stays_unblocked(number)) {
            mask &= ~(1 << (number - 1));
        }
    }
    return mask;
}

/// Whether a call that sets `handler` stops here. libc itself refuses SIG_ERR.
bool is_kept(int number, sighandler_t handler) noexcept { return handler != SIG_ERR && fault_handler_installed(number); }

/// The handler runs once, and its own signal may interrupt it.
constexpr int sysv_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;

sighandler_t exchange(int number, sighandler_t handler, int flags) noexcept
{
    struct sigaction wanted{};
    struct sigaction previous{};
    wanted.sa_handler = handler;
    wanted.sa_flags = flags;
    stillpoint::fault_handler_exchange(number, &wanted, &previous);
    return previous.sa_handler;
}

}  // namespace

SHIM int sigaction(int number, const struct sigaction* wanted, struct sigaction* previous) noexcept
{
    if (fault_handler_installed(number)) {
        stillpoint::fault_handler_exchange(number, wanted, previous);
        return 0;
    }
    const auto set = term_signal::is_taken_over(number) ? &term_signal::exchange : REAL(sigaction);
    sigset_t storage;
    if (wanted == nullptr || without_ours(SIG_BLOCK, &wanted->sa_mask, storage) == &wanted->sa_mask) {
        return set(number, wanted, previous);
    }
    struct sigaction unblocking = *wanted;
    unblocking.sa_mask = storage;
    return set(number, &unblocking, previous);
}

SHIM sighandler_t signal(int number, sighandler_t handler) noexcept
{
    return is_kept(number, handler) ? exchange(number, handler, SA_RESTART)
                                    : term_signal::after_setting(number, REAL(signal)(number, handler));
}

SHIM sighandler_t bsd_signal(int number, sighandler_t handler) noexcept
{
    return is_kept(number, handler) ? exchange(number, handler, SA_RESTART)
                                    : term_signal::after_setting(number, REAL(bsd_signal)(number, handler));
}

SHIM sighandler_t ssignal(int number, sighandler_t handler) noexcept
{
    return is_kept(number, handler) ? exchange(number, handler, SA_RESTART)
                                    : term_signal::after_setting(number, REAL(ssignal)(number, handler));
}

SHIM sighandler_t sysv_signal(int number, sighandler_t handler) noexcept
{
    return is_kept(number, handler) ? exchange(number, handler, sysv_flags)
                                    : term_signal::after_setting(number, REAL(sysv_signal)(number, handler));
}

/// The signal() of programs that are compiled for POSIX alone.
SHIM sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept
{
    return is_kept(number, handler) ? exchange(number, handler, sysv_flags)
                                    : term_signal::after_setting(number, REAL(__sysv_signal)(number, handler));
}

SHIM sighandler_t sigset(int number, sighandler_t handler) noexcept
{
    if (!is_kept(number, handler)) {
        return term_signal::after_setting(number, REAL(sigset)(number, handler));
    }
    if (handler != SIG_HOLD) {
        return exchange(number, handler, 0);
    }
    struct sigaction present{};
    stillpoint::fault_handler_exchange(number, nullptr, &present);
    return present.sa_handler;
}

SHIM int sigignore(int number) noexcept
{
    if (!fault_handler_installed(number)) {
        return REAL(sigignore)(number);
    }
    static_cast<void>(exchange(number, SIG_IGN, 0));
    return 0;
}

SHIM int sighold(int number) noexcept { return fault_signal_stays_unblocked(number) ? 0 : REAL(sighold)(number); }

SHIM int sigblock(int mask) noexcept { return REAL(sigblock)(without_ours(mask)); }

SHIM int sigsetmask(int mask) noexcept { return REAL(sigsetmask)(without_ours(mask)); }

SHIM int sigprocmask(int how, const sigset_t* set, sigset_t* previous) noexcept
{
    const KernelCall call(previous, sizeof *previous);
    sigset_t storage;
    return REAL(sigprocmask)(how, without_ours(how, set, storage), previous);
}

SHIM int pthread_sigmask(int how, const sigset_t* set, sigset_t* previous) noexcept
{
    const KernelCall call(previous, sizeof *previous);
    sigset_t storage;
    return REAL(pthread_sigmask)(how, without_ours(how, set, storage), previous);
}

// These wait with a mask of their own. A handler that runs meanwhile has that mask, and may touch durable memory. What they fill is as
// in results.cpp.

SHIM int sigsuspend(const sigset_t* set)
{
    sigset_t storage;
    return REAL(sigsuspend)(without_ours(SIG_SETMASK, set, storage));
}

SHIM int pselect(int count, fd_set* read_set, fd_set* write_set, fd_set* error_set, const timespec* limit, const sigset_t* set)
{
    const KernelCall of_reads(read_set, fd_set_bytes(count));
    const KernelCall of_writes(write_set, fd_set_bytes(count));
    const KernelCall of_errors(error_set, fd_set_bytes(count));
    sigset_t storage;
    return REAL(pselect)(count, read_set, write_set, error_set, limit, without_ours(SIG_SETMASK, set, storage));
}

SHIM int ppoll(pollfd* files, nfds_t count, const timespec* limit, const sigset_t* set)
{
    const KernelCall call(files, count * sizeof *files);
    sigset_t storage;
    return REAL(ppoll)(files, count, limit, without_ours(SIG_SETMASK, set, storage));
}

SHIM int __ppoll_chk(pollfd* files, nfds_t count, const timespec* limit, const sigset_t* set, size_t files_bytes)
{
    const KernelCall call(files, count * sizeof *files);
    sigset_t storage;
    return REAL(__ppoll_chk)(files, count, limit, without_ours(SIG_SETMASK, set, storage), files_bytes);
}

SHIM int epoll_pwait(int file, epoll_event* events, int capacity, int limit_ms, const sigset_t* set)
{
    const KernelCall call(events, events_bytes(capacity));
    sigset_t storage;
    return REAL(epoll_pwait)(file, events, capacity, limit_ms, without_ours(SIG_SETMASK, set, storage));
}
