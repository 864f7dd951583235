// SIGSEGV, while a tracker relies on it: the program's handler is kept behind the tracker's, and
// the signal stays unblocked, because the kernel ends a process that faults with it blocked. Everything else goes
// straight to libc.

#include <cerrno>

#include "interpose/real.hpp"
#include "runtime/fault_handler.hpp"

namespace {

/// `set` without SIGSEGV, in `storage`, where the signal must stay unblocked.
const sigset_t* without_segv(int how, const sigset_t* set, sigset_t& storage) noexcept
{
    if (set == nullptr || how == SIG_UNBLOCK || !stillpoint::fault_handler_installed() ||
        sigismember(set, SIGSEGV) != 1) {
        return set;
    }
    storage = *set;
    sigdelset(&storage, SIGSEGV);
    return &storage;
}

}  // namespace

SHIM int sigaction(int number, const struct sigaction* wanted, struct sigaction* previous) noexcept
{
    if (!stillpoint::fault_handler_installed()) {
        return REAL(sigaction)(number, wanted, previous);
    }
    if (number == SIGSEGV) {
        stillpoint::fault_handler_exchange(wanted, previous);
        return 0;
    }
    if (wanted == nullptr) {
        return REAL(sigaction)(number, wanted, previous);
    }
    struct sigaction unblocking = *wanted;
    sigdelset(&unblocking.sa_mask, SIGSEGV);
    return REAL(sigaction)(number, &unblocking, previous);
}

SHIM sighandler_t signal(int number, sighandler_t handler) noexcept
{
    if (number != SIGSEGV || handler == SIG_ERR || !stillpoint::fault_handler_installed()) {
        return REAL(signal)(number, handler);
    }
    struct sigaction wanted{};
    struct sigaction previous{};
    wanted.sa_handler = handler;
    wanted.sa_flags = SA_RESTART;  // What glibc's signal() means.
    stillpoint::fault_handler_exchange(&wanted, &previous);
    return previous.sa_handler;
}

SHIM int sigprocmask(int how, const sigset_t* set, sigset_t* previous) noexcept
{
    sigset_t storage;
    return REAL(sigprocmask)(how, without_segv(how, set, storage), previous);
}

SHIM int pthread_sigmask(int how, const sigset_t* set, sigset_t* previous) noexcept
{
    sigset_t storage;
    return REAL(pthread_sigmask)(how, without_segv(how, set, storage), previous);
}
