// Barriers and semaphores. Waiting in one does not begin or end a FASE: a thread that waits
// inside stays inside, and checkpoints wait for it. Those in durable memory are recorded, because waiters they
// hold do not exist after a crash.
//
// Not intercepted, because nothing is to be done there: creating, joining and detaching threads. A
// thread is counted from its first lock on, and a thread key's destructor ends that.

#include "core/store_marks.hpp"
#include "interpose/real.hpp"
#include "runtime/sync_objects.hpp"

using stillpoint::sync_object_used;
using stillpoint::SyncObjectKind;

namespace {

/// A semaphore's value is its content, whoever calls. What waiters leave in the other objects recovery resets.
int mark_changed(int result, const sem_t* semaphore) noexcept
{
    stillpoint::note_lock_store(semaphore, sizeof *semaphore);
    return result;
}

}  // namespace

SHIM int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept
{
    sync_object_used(barrier, SyncObjectKind::barrier);
    return REAL(pthread_barrier_wait)(barrier);
}

SHIM int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept
{
    const int result = REAL(pthread_barrier_destroy)(barrier);
    if (result == 0) {
        stillpoint::sync_object_destroyed(barrier);
    }
    return result;
}

SHIM int sem_wait(sem_t* semaphore)
{
    sync_object_used(semaphore, SyncObjectKind::semaphore);
    return mark_changed(REAL(sem_wait)(semaphore), semaphore);
}

SHIM int sem_timedwait(sem_t* semaphore, const timespec* deadline)
{
    sync_object_used(semaphore, SyncObjectKind::semaphore);
    return mark_changed(REAL(sem_timedwait)(semaphore, deadline), semaphore);
}

SHIM int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* deadline)
{
    sync_object_used(semaphore, SyncObjectKind::semaphore);
    return mark_changed(REAL(sem_clockwait)(semaphore, clock, deadline), semaphore);
}

SHIM int sem_trywait(sem_t* semaphore) noexcept
{
    return mark_changed(REAL(sem_trywait)(semaphore), semaphore);
}

SHIM int sem_post(sem_t* semaphore) noexcept
{
    return mark_changed(REAL(sem_post)(semaphore), semaphore);
}

SHIM int sem_destroy(sem_t* semaphore) noexcept
{
    const int result = REAL(sem_destroy)(semaphore);
    if (result == 0) {
        stillpoint::sync_object_destroyed(semaphore);
    }
    return result;
}
