// Barriers and semaphores. Waiting in one does not begin or end a FASE: a thread that waits
// inside stays inside, and checkpoints wait for it. A use of one in durable memory is listed, because waiters that
// a capture finds in it do not exist after a crash.
//
// A thread that is made sees what its maker has stored, as one that is woken does. Joining and detaching threads are not intercepted: a
// thread is counted from its first lock on, and a thread key's destructor ends that.

#include "core/store_marks.hpp"
#include "interpose/real.hpp"
#include "runtime/kernel_lock_call.hpp"
#include "runtime/section_ends.hpp"
#include "runtime/sync_uses.hpp"

using stillpoint::KernelLockCall;
using stillpoint::SyncObjectKind;
using stillpoint::SyncUse;

namespace {

template <class Object>
int mark_changed(int result, const Object* object) noexcept
{
    stillpoint::note_lock_store(object, sizeof *object);
    return result;
}

void tell_wakeup() noexcept
{
    if (stillpoint::section_ends::are_told()) [[unlikely]] {
        stillpoint::section_ends::tell_wakeup();
    }
}

}  // namespace

SHIM int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept
{
    tell_wakeup();
    const SyncUse use(barrier, SyncObjectKind::barrier);
    const KernelLockCall guard(barrier);
    return mark_changed(REAL(pthread_barrier_wait)(barrier), barrier);
}

SHIM int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept
{
    const int result = [barrier] {
        const KernelLockCall guard(barrier);
        return REAL(pthread_barrier_destroy)(barrier);  // This waits for threads on their way out.
    }();
    if (result == 0) {
        stillpoint::sync_uses::forget(barrier, sizeof *barrier);
    }
    return result;
}

SHIM int sem_wait(sem_t* semaphore)
{
    const SyncUse use(semaphore, SyncObjectKind::semaphore);
    const KernelLockCall guard(semaphore);
    return mark_changed(REAL(sem_wait)(semaphore), semaphore);
}

SHIM int sem_timedwait(sem_t* semaphore, const timespec* deadline)
{
    const SyncUse use(semaphore, SyncObjectKind::semaphore);
    const KernelLockCall guard(semaphore);
    return mark_changed(REAL(sem_timedwait)(semaphore, deadline), semaphore);
}

SHIM int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* deadline)
{
    const SyncUse use(semaphore, SyncObjectKind::semaphore);
    const KernelLockCall guard(semaphore);
    return mark_changed(REAL(sem_clockwait)(semaphore, clock, deadline), semaphore);
}

SHIM int sem_trywait(sem_t* semaphore) noexcept { return mark_changed(REAL(sem_trywait)(semaphore), semaphore); }

SHIM int sem_post(sem_t* semaphore) noexcept
{
    tell_wakeup();
    const KernelLockCall guard(semaphore);
    return mark_changed(REAL(sem_post)(semaphore), semaphore);
}

SHIM int sem_destroy(sem_t* semaphore) noexcept
{
    const int result = REAL(sem_destroy)(semaphore);
    if (result == 0) {
        stillpoint::sync_uses::forget(semaphore, sizeof *semaphore);
    }
    return result;
}

SHIM int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) noexcept
{
    tell_wakeup();
    return REAL(pthread_create)(thread, attributes, start, argument);
}

SHIM int thrd_create(thrd_t* thread, thrd_start_t start, void* argument)
{
    tell_wakeup();
    return REAL(thrd_create)(thread, start, argument);
}
