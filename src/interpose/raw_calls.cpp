// `syscall`: system calls that programs make by their number. Those that store into a buffer of the caller are guarded as their
// namesakes in io.cpp are, and locks made of futexes as those of libc are. They are not cancellation points, as in libc.

#include <cstdarg>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "interpose/message_call.hpp"
#include "interpose/real.hpp"
#include "runtime/kernel_call.hpp"
#include "runtime/mapping_calls.hpp"
#include "runtime/session_process.hpp"

namespace {

using stillpoint::KernelCall;
using stillpoint::KernelCallParts;

/// All that a system call can have; those that the caller did not pass are anything.
struct Call {
    long number;
    long arguments[6];

    template <class T>
    [[nodiscard]] T* address(int i) const noexcept
    {
        return reinterpret_cast<T*>(arguments[i]);
    }
    [[nodiscard]] std::size_t size(int i) const noexcept { return static_cast<std::size_t>(arguments[i]); }
    long operator()() const noexcept
    {
        return REAL(syscall)(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    }
};

long receive_messages(const Call& call) noexcept
{
    return stillpoint::receive_messages(call.address<mmsghdr>(1), static_cast<unsigned>(call.arguments[2]), [&](unsigned count) {
        Call one = call;
        one.arguments[2] = static_cast<long>(count);
        return static_cast<int>(one());
    });
}

long receive_from(const Call& call) noexcept
{
    const auto* const address_bytes = call.address<const socklen_t>(5);
    KernelCall guard(call.address<void>(1), call.size(2));
    const KernelCall sender(call.address<void>(4), address_bytes != nullptr ? *address_bytes : 0);
    const KernelCall sender_bytes(call.address<void>(5), sizeof *address_bytes);
    return guard.returned(call());
}

/// The kernel stores into a futex with an owner, and needs a writable page for one that several processes may share.
long futex(const Call& call) noexcept
{
    KernelCall guard(call.address<void>(0), sizeof(int));
    const long result = call();
    guard.stored(sizeof(int));
    return result;
}

[[nodiscard]] bool only_reads_its_futex(long operation) noexcept
{
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_TRYLOCK_PI:
    case FUTEX_UNLOCK_PI:
    case FUTEX_WAKE_OP:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_CMP_REQUEUE_PI: return false;
    default: return (operation & FUTEX_PRIVATE_FLAG) != 0;
    }
}

}  // namespace

SHIM long syscall(long number, ...) noexcept
{
    Call call{.number = number, .arguments = {}};
    va_list passed;
    va_start(passed, number);
    for (long& argument : call.arguments) {
        argument = va_arg(passed, long);
    }
    va_end(passed);
    if (stillpoint::refuses_system_call(number, call.arguments)) [[unlikely]] {
        return -1;
    }
    switch (number) {
    case SYS_read:
    case SYS_pread64: {
        KernelCall guard(call.address<void>(1), call.size(2));
        return guard.returned(call());
    }
    case SYS_getrandom: {
        KernelCall guard(call.address<void>(0), call.size(1));
        return guard.returned(call());
    }
    case SYS_readv:
    case SYS_preadv:
    case SYS_preadv2:
    case SYS_vmsplice:
    case SYS_process_vm_readv: {
        KernelCallParts guard(call.address<const iovec>(1), call.size(2));
        return guard.returned(call());
    }
    case SYS_process_vm_writev: {
        KernelCallParts guard(call.arguments[0] == getpid() ? call.address<const iovec>(3) : nullptr, call.size(4));
        return guard.returned(call());
    }
    case SYS_recvfrom: return receive_from(call);
    case SYS_recvmsg: {
        stillpoint::MessageCall guard(call.address<msghdr>(1));
        return guard.returned(call());
    }
    case SYS_recvmmsg: return receive_messages(call);
    case SYS_futex:
        if (stillpoint::session_process::is_elsewhere()) {
            call.arguments[1] &= ~FUTEX_PRIVATE_FLAG;  // The word is in memory of several processes.
        }
        return only_reads_its_futex(call.arguments[1]) ? call() : futex(call);
    default: return call();
    }
}
