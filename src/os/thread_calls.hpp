#pragma once
// The system calls of the runtime about threads: their names, fences in other threads, their end.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <csignal>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/syscall.h>

namespace stillpoint::os {

[[nodiscard]] inline int thread_id() noexcept { return gettid(); }

/// True if this process has no such thread any more.
[[nodiscard]] inline bool thread_is_gone(int thread) noexcept { return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH; }

inline void yield_cpu() noexcept { sched_yield(); }

/// Lets others go on until the word is zero, or was a moment ago: the caller looks again.
template <class T>
void yield_until_zero(const std::atomic<T>& word) noexcept
{
    while (word.load(std::memory_order_relaxed) != 0) {
        yield_cpu();
    }
}

/// False: the kernel has no membarrier, or a sandbox refuses it.
[[nodiscard]] inline bool register_for_membarrier() noexcept
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/// Each running thread of the process executes a full fence between two of its instructions before this
/// returns; a thread that does not run has had one when it was descheduled.
inline void membarrier() noexcept { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }

/// All signals are blocked in the calling thread while one of these lives.
class SignalsBlocked {
public:
    SignalsBlocked() noexcept
    {
        const std::uint64_t all = ~std::uint64_t{0};
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &saved_mask_, sizeof all);
    }
    ~SignalsBlocked() { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved_mask_, nullptr, sizeof saved_mask_); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    std::uint64_t saved_mask_ = 0;  // The kernel's own form of a signal set.
};

/// A value for each thread whose destructor runs when the thread ends.
using ExitKey = pthread_key_t;
[[nodiscard]] inline bool make_exit_key(ExitKey& key, void (*destructor)(void*)) noexcept
{
    return pthread_key_create(&key, destructor) == 0;
}
/// nullptr: no destructor runs.
inline void set_exit_value(ExitKey key, void* value) noexcept { pthread_setspecific(key, value); }

/// The best size for one call of zeroed_memory.
inline constexpr std::size_t zeroed_memory_unit = 64 * 1024;

/// Memory of zeroes for the life of the process; nullptr: there is none. Not by libc's mmap: ThreadSanitizer takes that for a write of its
/// caller, which readers of zeroes have no order with, and need none.
[[nodiscard]] inline void* zeroed_memory(std::size_t bytes) noexcept
{
    const long address = syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return address == -1 ? nullptr : reinterpret_cast<void*>(address);
}

}  // namespace stillpoint::os
