// Calls about threads, and initialisers of what they synchronise by. Nothing is counted here: where the program's threads are processes,
// the engine has put its own functions in the place of libc's (session_process.hpp), and elsewhere each is a jump.

#include "core/sanitizers.hpp"
#include "interpose/real.hpp"
#include "runtime/section_ends.hpp"

namespace {

/// A thread that is cancelled, and its cleanup handlers, see what the calling thread has stored.
void tell_wakeup() noexcept
{
    if (stillpoint::section_ends::are_told()) [[unlikely]] {
        stillpoint::section_ends::tell_wakeup();
    }
}

}  // namespace

SHIM int pthread_join(pthread_t thread, void** value) { return REAL(pthread_join)(thread, value); }
SHIM int pthread_tryjoin_np(pthread_t thread, void** value) noexcept { return REAL(pthread_tryjoin_np)(thread, value); }
SHIM int pthread_timedjoin_np(pthread_t thread, void** value, const timespec* time)
{
    return REAL(pthread_timedjoin_np)(thread, value, time);
}
SHIM int pthread_clockjoin_np(pthread_t thread, void** value, clockid_t clock, const timespec* time)
{
    return REAL(pthread_clockjoin_np)(thread, value, clock, time);
}
SHIM int pthread_detach(pthread_t thread) noexcept { return REAL(pthread_detach)(thread); }
SHIM int pthread_kill(pthread_t thread, int number) noexcept { return REAL(pthread_kill)(thread, number); }
SHIM int pthread_cancel(pthread_t thread)
{
    tell_wakeup();
    return REAL(pthread_cancel)(thread);
}
SHIM void pthread_exit(void* value)
{
    REAL(pthread_exit)(value);
    __builtin_unreachable();
}
// ThreadSanitizer makes a key before code that it has instrumented may run.
#if !STILLPOINT_THREAD_SANITIZER
SHIM int pthread_once(pthread_once_t* control, void (*routine)()) { return REAL(pthread_once)(control, routine); }
SHIM int pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) noexcept { return REAL(pthread_key_create)(key, destructor); }
SHIM int pthread_key_delete(pthread_key_t key) noexcept { return REAL(pthread_key_delete)(key); }
SHIM int pthread_setspecific(pthread_key_t key, const void* value) noexcept { return REAL(pthread_setspecific)(key, value); }
#endif
SHIM void call_once(once_flag* flag, void (*routine)()) { REAL(call_once)(flag, routine); }
SHIM int tss_create(tss_t* key, tss_dtor_t destructor) { return REAL(tss_create)(key, destructor); }
SHIM void tss_delete(tss_t key) { REAL(tss_delete)(key); }
SHIM int tss_set(tss_t key, void* value) { return REAL(tss_set)(key, value); }
SHIM int thrd_join(thrd_t thread, int* value) { return REAL(thrd_join)(thread, value); }
SHIM int thrd_detach(thrd_t thread) { return REAL(thrd_detach)(thread); }

SHIM int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) noexcept
{
    return REAL(pthread_mutex_init)(mutex, attributes);
}
SHIM int pthread_mutex_consistent(pthread_mutex_t* mutex) noexcept { return REAL(pthread_mutex_consistent)(mutex); }
SHIM int pthread_rwlock_init(pthread_rwlock_t* lock, const pthread_rwlockattr_t* attributes) noexcept
{
    return REAL(pthread_rwlock_init)(lock, attributes);
}
SHIM int pthread_cond_init(pthread_cond_t* condition, const pthread_condattr_t* attributes) noexcept
{
    return REAL(pthread_cond_init)(condition, attributes);
}
SHIM int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes, unsigned count) noexcept
{
    return REAL(pthread_barrier_init)(barrier, attributes, count);
}
SHIM int sem_init(sem_t* semaphore, int shared, unsigned value) noexcept { return REAL(sem_init)(semaphore, shared, value); }
SHIM int sem_getvalue(sem_t* semaphore, int* value) noexcept { return REAL(sem_getvalue)(semaphore, value); }

SHIM pid_t fork() noexcept { return REAL(fork)(); }
