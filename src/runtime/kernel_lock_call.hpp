#pragma once
// Guards for calls of libc on locks that the kernel itself works on. A futex that several processes may share, or one with an owner,
// needs a writable page, whatever the operation: to find the page, to store the next owner, or to mark a dead one. Where a tracker
// has protected it, a wait fails with EFAULT, which ends the program, and a wake-up is lost in silence. So during such a call the
// object is memory that a system call may store into (kernel_writes.hpp). Other futexes are only read there.

#include <atomic>
#include <cstddef>
#include <pthread.h>
#include <semaphore.h>

#include "runtime/kernel_writes.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint {

namespace kernel_locks {

/// The session's tracker protects pages. Looked at by every call that may need the guard.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> are_guarded;

// glibc's fields: sysdeps/nptl/bits, nptl/pthreadP.h.
inline bool may_be_stored_to(const pthread_mutex_t& mutex) noexcept
{
    constexpr int robust_bit = 16;  // The kernel marks it when its owner ends; a futex of several processes, whatever it was made as.
    constexpr int inheriting_bit = 32;
    constexpr int shared_bit = 128;
    return (mutex.__data.__kind & (robust_bit | inheriting_bit | shared_bit)) != 0;
}
inline bool may_be_stored_to(const pthread_rwlock_t& rwlock) noexcept { return rwlock.__data.__shared != 0; }
inline bool may_be_stored_to(const pthread_cond_t& condition) noexcept
{
    constexpr unsigned shared_bit = 1;
    return (__atomic_load_n(&condition.__data.__wrefs, __ATOMIC_RELAXED) & shared_bit) != 0;
}
/// Their flag lies in what is opaque here.
inline bool may_be_stored_to(const pthread_barrier_t&) noexcept { return true; }
inline bool may_be_stored_to(const sem_t&) noexcept { return true; }

/// A range that a jump has left: its page was marked when it was opened, and still is.
void was_left(void* address, std::size_t size) noexcept;
/// Begins a call; the lock's pages stay writable from now on, until the slot is withdrawn.
[[nodiscard]] kernel_writes::Slot begin(const void* object, std::size_t size, const void* frame) noexcept;

/// The calling thread ends, and the kernel will store into a robust mutex that it holds: until release(). no_slot: there is none.
[[nodiscard]] kernel_writes::Slot begin_after_thread(const void* mutex) noexcept;
void release(kernel_writes::Slot slot) noexcept;

}  // namespace kernel_locks

/// One object during one call; also left by unwinding. Several of one frame name that frame.
class KernelLockCall {
public:
    template <class Object>
    [[gnu::always_inline]] explicit KernelLockCall(const Object* object, const void* frame = nullptr) noexcept
    {
        if (kernel_locks::are_guarded.load(std::memory_order_relaxed)) [[unlikely]] {
            if (stillpoint_is_persistent(object) && kernel_locks::may_be_stored_to(*object)) {
                if (frame == nullptr) {
                    kernel_writes::begin_call(this, &kernel_locks::was_left);
                }
                frame_ = frame != nullptr ? frame : this;
                slot_ = kernel_locks::begin(object, sizeof *object, frame_);
                is_begun_ = true;
            }
        }
    }
    [[gnu::always_inline]] ~KernelLockCall()
    {
        if (is_begun_) [[unlikely]] {
            kernel_writes::withdraw(slot_, frame_);
        }
    }
    KernelLockCall(const KernelLockCall&) = delete;
    KernelLockCall& operator=(const KernelLockCall&) = delete;

private:
    kernel_writes::Slot slot_ = kernel_writes::no_slot;
    const void* frame_ = nullptr;
    bool is_begun_ = false;
};

}  // namespace stillpoint
