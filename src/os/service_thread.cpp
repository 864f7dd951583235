#include "os/service_thread.hpp"

#include <cstring>
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stillpoint::os {

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool sanitizer_must_see_threads = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr bool sanitizer_must_see_threads = true;
#else
constexpr bool sanitizer_must_see_threads = false;
#endif
#else
constexpr bool sanitizer_must_see_threads = false;
#endif

template <class Function>
Function libc_function(const char* name, Function fallback) noexcept
{
    if (sanitizer_must_see_threads) {
        return fallback;
    }
    void* found = dlsym(RTLD_NEXT, name);
    return found != nullptr ? reinterpret_cast<Function>(found) : fallback;
}

/// As the kernel has sets: bit 0 is signal 1.
std::uint64_t left_open = 0;

constexpr std::uint64_t set_of(int signal) noexcept { return std::uint64_t{1} << (signal - 1); }

}  // namespace

void ServiceThread::leave_open(int signal) noexcept { left_open |= set_of(signal); }

Result<void> ServiceThread::start(const char* name, void (*run)(void*), void* context)
{
    name_ = name;
    run_ = run;
    context_ = context;
    static const auto create = libc_function("pthread_create", &pthread_create);
    // The new thread inherits the mask: it must never run with a signal of the program open. SIGBUS says that mapped
    // memory is gone; the two before SIGRTMIN are libc's own, which no program can block: setuid and its relatives wait
    // until every thread has answered one. The system call is made directly because the interposer has the library's function.
    constexpr int libc_cancel = 32;
    constexpr int libc_set_id = 33;
    std::uint64_t all = ~left_open;
    for (const int open : {SIGBUS, libc_cancel, libc_set_id}) {
        all &= ~set_of(open);
    }
    std::uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    const int error = create(&thread_, nullptr, &entry, this);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
    if (error != 0) {
        return fail(SP_E_NO_MEMORY, error, "cannot start the thread {} ({})", name, std::strerror(error));
    }
    running_ = true;
    return {};
}

void* ServiceThread::entry(void* self)
{
    const auto* thread = static_cast<ServiceThread*>(self);
    prctl(PR_SET_NAME, thread->name_);
    thread->run_(thread->context_);
    return nullptr;
}

void ServiceThread::join() noexcept
{
    if (running_) {
        static const auto join_thread = libc_function("pthread_join", &pthread_join);
        join_thread(thread_, nullptr);
        running_ = false;
    }
}

}  // namespace stillpoint::os
