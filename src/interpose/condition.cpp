// Condition waits of POSIX and C11. Where the mutex is all that the thread holds, the wait ends the FASE:
// the monitor's invariant holds there, and a thread that waits permanently must not stop checkpoints.
// docs/internals/quiescence.md, "Condition waits".

#include <cerrno>

#include "core/store_marks.hpp"
#include "interpose/real.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/kernel_lock_call.hpp"
#include "runtime/section_ends.hpp"
#include "runtime/sync_uses.hpp"

namespace fase = stillpoint::fase;
using stillpoint::KernelLockCall;
using stillpoint::SyncObjectKind;
using stillpoint::SyncUse;

namespace {

/// glibc's mark of a robust mutex whose owner died and that is not consistent again: releasing
/// it would make it unusable permanently.
bool is_inconsistent(const pthread_mutex_t& mutex) noexcept
{
    constexpr int robust_bit = 16;
    constexpr int inconsistent_owner = 0x7fffffff;
    return (mutex.__data.__kind & robust_bit) != 0 && mutex.__data.__owner == inconsistent_owner;
}

/// One condition wait. If it is left by cancellation, the destructor runs while libc unwinds, after
/// the mutex was acquired again and before the program's cleanup handlers: they run inside the FASE.
class ConditionWait {
public:
    ConditionWait(const void* condition, pthread_mutex_t* mutex) noexcept
        : use_of_condition_(condition, SyncObjectKind::condition),
          // Around the wait the thread is outside its FASE with the mutex held, for an instant: a
          // checkpoint may see that.
          use_of_mutex_(mutex, SyncObjectKind::mutex), kernel_call_on_condition_(static_cast<const pthread_cond_t*>(condition), this),
          kernel_call_on_mutex_(mutex, this), condition_(condition), mutex_(mutex), outside_(suspend(mutex))
    {
    }
    /// The uses end after it: no capture may miss what the call has left in the two.
    ~ConditionWait()
    {
        if (outside_) {
            get_inside();
        }
        stillpoint::note_lock_store(condition_, sizeof(pthread_cond_t));
    }
    ConditionWait(const ConditionWait&) = delete;
    ConditionWait& operator=(const ConditionWait&) = delete;

    /// The result of the intercepted function, given what the real one did.
    int finish(int result) noexcept
    {
        if (!outside_) {
            return result;
        }
        outside_ = false;
        if (result == ENOTRECOVERABLE) {
            return result;  // The mutex is not held.
        }
        const int relocked = get_inside();
        return relocked == 0 ? result : relocked;
    }

private:
    [[nodiscard]] static bool suspend(const void* mutex) noexcept
    {
        if (stillpoint::section_ends::are_told()) [[unlikely]] {
            stillpoint::section_ends::tell_release(mutex);
        }
        return fase::suspend_for_wait(mutex);
    }

    /// The mutex is held. While the gate is shut it is released, so that threads inside can get it and
    /// finish; the program sees a wake-up without a cause, which is allowed. Returns what a
    /// second acquire returned, if there was one.
    int get_inside() noexcept
    {
        while (!fase::resume_after_wait(mutex_)) {
            if (is_inconsistent(*mutex_) || REAL(pthread_mutex_unlock)(mutex_) != 0) {
                fase::wait_while_shut();
                continue;
            }
            fase::enter(mutex_, stillpoint::LockKind::mutex);
            const int result = REAL(pthread_mutex_lock)(mutex_);
            if (result != 0 && result != EOWNERDEAD) {
                fase::leave(mutex_);
            }
            return result;
        }
        return 0;
    }

    SyncUse use_of_condition_;
    SyncUse use_of_mutex_;
    KernelLockCall kernel_call_on_condition_;
    KernelLockCall kernel_call_on_mutex_;
    const void* condition_;
    pthread_mutex_t* mutex_;
    bool outside_;
};

/// A wake-up: it locks the condition variable inside, if a thread waits.
template <class Condition, class Real>
int wake(Condition* condition, Real real) noexcept
{
    const SyncUse use(condition, SyncObjectKind::condition);
    const KernelLockCall guard(reinterpret_cast<const pthread_cond_t*>(condition));
    const int result = real(condition);
    stillpoint::note_lock_store(condition, sizeof *condition);
    return result;
}

/// C11's mtx_t is glibc's mutex under another name.
pthread_mutex_t* posix_mutex(mtx_t* mutex) noexcept
{
    static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t));
    return reinterpret_cast<pthread_mutex_t*>(mutex);
}

int finish_c11(ConditionWait& wait, int result) noexcept
{
    const int finished = wait.finish(0);
    return finished == 0 ? result : thrd_error;
}

}  // namespace

SHIM int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex)
{
    ConditionWait wait{condition, mutex};
    return wait.finish(REAL(pthread_cond_wait)(condition, mutex));
}

SHIM int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* deadline)
{
    ConditionWait wait{condition, mutex};
    return wait.finish(REAL(pthread_cond_timedwait)(condition, mutex, deadline));
}

SHIM int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline)
{
    ConditionWait wait{condition, mutex};
    return wait.finish(REAL(pthread_cond_clockwait)(condition, mutex, clock, deadline));
}

SHIM int pthread_cond_signal(pthread_cond_t* condition) noexcept { return wake(condition, REAL(pthread_cond_signal)); }

SHIM int pthread_cond_broadcast(pthread_cond_t* condition) noexcept { return wake(condition, REAL(pthread_cond_broadcast)); }

SHIM int pthread_cond_destroy(pthread_cond_t* condition) noexcept
{
    const int result = [condition] {
        const KernelLockCall guard(condition);
        return REAL(pthread_cond_destroy)(condition);  // This may wait for threads on their way out.
    }();
    if (result == 0) {
        stillpoint::sync_uses::forget(condition, sizeof *condition);
    }
    return result;
}

SHIM int cnd_wait(cnd_t* condition, mtx_t* mutex)
{
    ConditionWait wait{condition, posix_mutex(mutex)};
    return finish_c11(wait, REAL(cnd_wait)(condition, mutex));
}

SHIM int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* deadline)
{
    ConditionWait wait{condition, posix_mutex(mutex)};
    return finish_c11(wait, REAL(cnd_timedwait)(condition, mutex, deadline));
}

SHIM int cnd_signal(cnd_t* condition) { return wake(condition, REAL(cnd_signal)); }

SHIM int cnd_broadcast(cnd_t* condition) { return wake(condition, REAL(cnd_broadcast)); }

SHIM void cnd_destroy(cnd_t* condition)
{
    REAL(cnd_destroy)(condition);
    stillpoint::sync_uses::forget(condition, sizeof *condition);
}
