// SIGSEGV, while a tracker relies on it, and SIGBUS, while a pool is open: the program's handler is kept behind the
// runtime's, and the signal stays unblocked, because the kernel ends a process that faults with it blocked. Everything
// else goes straight to libc.

#include <cerrno>

#include "interpose/real.hpp"
#include "runtime/fault_handler.hpp"

namespace {

using stillpoint::fault_handler_installed;

/// `set` without the signals that must stay unblocked, in `storage` where there is one.
const sigset_t* without_ours(int how, const sigset_t* set, sigset_t& storage) noexcept
{
    if (set == nullptr || how == SIG_UNBLOCK) {
        return set;
    }
    const sigset_t* result = set;
    for (const int number : {SIGSEGV, SIGBUS}) {
        if (fault_handler_installed(number) && sigismember(result, number) == 1) {
            storage = *result;
            sigdelset(&storage, number);
            result = &storage;
        }
    }
    return result;
}

}  // namespace

SHIM int sigaction(int number, const struct sigaction* wanted, struct sigaction* previous) noexcept
{
    if (fault_handler_installed(number)) {
        stillpoint::fault_handler_exchange(number, wanted, previous);
        return 0;
    }
    sigset_t storage;
    if (wanted == nullptr || without_ours(SIG_BLOCK, &wanted->sa_mask, storage) == &wanted->sa_mask) {
        return REAL(sigaction)(number, wanted, previous);
    }
    struct sigaction unblocking = *wanted;
    unblocking.sa_mask = storage;
    return REAL(sigaction)(number, &unblocking, previous);
}

SHIM sighandler_t signal(int number, sighandler_t handler) noexcept
{
    if (handler == SIG_ERR || !fault_handler_installed(number)) {
        return REAL(signal)(number, handler);
    }
    struct sigaction wanted{};
    struct sigaction previous{};
    wanted.sa_handler = handler;
    wanted.sa_flags = SA_RESTART;  // What glibc's signal() means.
    stillpoint::fault_handler_exchange(number, &wanted, &previous);
    return previous.sa_handler;
}

SHIM int sigprocmask(int how, const sigset_t* set, sigset_t* previous) noexcept
{
    sigset_t storage;
    return REAL(sigprocmask)(how, without_ours(how, set, storage), previous);
}

SHIM int pthread_sigmask(int how, const sigset_t* set, sigset_t* previous) noexcept
{
    sigset_t storage;
    return REAL(pthread_sigmask)(how, without_ours(how, set, storage), previous);
}
