#pragma once
// The functions of libc behind the intercepted ones.
//
// How to add an interceptor:
//   1. Add a line to intercepted.inc (and its header below, or a declaration if no header has it).
//   2. Write the shim in the file of its concern: SHIM, then account, call REAL(name)(...), account.
//      No logic: that belongs into src/runtime, where it is unit-tested.
//   3. Add it to the table in tests/interpose: accounting_test.cpp for locks, with its error returns; kernel_stores.cpp for what
//      the kernel stores.
//
// Rules for code in a shim, which runs inside a call of the program: no malloc, no intercepted lock,
// errno as libc left it, and the exception specification of libc's declaration (a cancellation point
// is left by unwinding: it must not be noexcept).

#include <aio.h>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <span>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <threads.h>
#include <unistd.h>

#include "runtime/session_process.hpp"

/// Defines an intercepted function: exported, with C linkage.
#define SHIM extern "C" __attribute__((visibility("default")))

// Functions that programs built with _FORTIFY_SOURCE call; headers declare these only there.
extern "C" {
ssize_t __read_chk(int file, void* buffer, size_t size, size_t buffer_bytes);
ssize_t __pread_chk(int file, void* buffer, size_t size, off_t offset, size_t buffer_bytes);
ssize_t __pread64_chk(int file, void* buffer, size_t size, off64_t offset, size_t buffer_bytes);
ssize_t __recv_chk(int file, void* buffer, size_t size, size_t buffer_bytes, int flags);
ssize_t __recvfrom_chk(int file, void* buffer, size_t size, size_t buffer_bytes, int flags, sockaddr* address, socklen_t* address_bytes);
size_t __fread_chk(void* buffer, size_t buffer_bytes, size_t size, size_t count, FILE* stream);
size_t __fread_unlocked_chk(void* buffer, size_t buffer_bytes, size_t size, size_t count, FILE* stream);
int __ppoll_chk(pollfd* files, nfds_t count, const timespec* limit, const sigset_t* set, size_t files_bytes);
// Headers declare bsd_signal for old standards only.
sighandler_t bsd_signal(int number, sighandler_t handler) noexcept;
}

namespace stillpoint::real {

/// Looks every function up: in the library's constructor, or earlier if another library's
/// constructor calls one first. Threads: any; all store the same pointers.
[[gnu::cold]] void resolve() noexcept;
/// From here on those functions are called in place of libc's. Before threads run.
[[gnu::cold]] void replace(std::span<const session_process::ReplacedCall> calls) noexcept;

/// Addresses of the real functions; nullptr until resolve(). Untyped, because types that libc declares with
/// attributes make poor template arguments; REAL gives the type back.
struct Addresses {
#define INTERCEPTED(name, version) std::atomic<void*> name;
#include "interpose/intercepted.inc"
#undef INTERCEPTED
};
[[gnu::visibility("hidden")]] extern constinit Addresses addresses;

[[gnu::always_inline]] inline void* ready(const std::atomic<void*>& address) noexcept
{
    void* function = address.load(std::memory_order_relaxed);
    if (function == nullptr) [[unlikely]] {
        resolve();
        function = address.load(std::memory_order_relaxed);
    }
    return function;
}

/// REAL(name)(arguments) calls the real function `name`.
#define REAL(name) (reinterpret_cast<decltype(&::name)>(::stillpoint::real::ready(::stillpoint::real::addresses.name)))

}  // namespace stillpoint::real
