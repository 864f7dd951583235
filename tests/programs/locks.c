// The locks of generated programs: every kind of pthread's, in ordinary or durable memory, taken in every way.

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#include "program.h"

struct lock_slot {
    uint64_t made;
    union {
        pthread_mutex_t mutex;
        pthread_rwlock_t rwlock;
        pthread_spinlock_t spinlock;
        mtx_t c11;
    } lock;
    uint64_t room[6];
};

enum { global_locks_bytes = 4096 }; // As program_generator.py has it.
_Static_assert(locks_max * sizeof(struct lock_slot) <= global_locks_bytes, "the variable has room");

static struct lock_slot volatile_slots[locks_max];

struct timespec time_in_us(clockid_t clock, uint64_t microseconds)
{
    struct timespec now;
    clock_gettime(clock, &now);
    const uint64_t nanoseconds = (uint64_t)now.tv_nsec + microseconds * 1000;
    now.tv_sec += (time_t)(nanoseconds / 1000000000);
    now.tv_nsec = (long)(nanoseconds % 1000000000);
    return now;
}

static void make_mutex(pthread_mutex_t* mutex, unsigned flags)
{
    pthread_mutexattr_t attributes;
    must(pthread_mutexattr_init(&attributes), "pthread_mutexattr_init");
    const int type = (flags & RECURSIVE) != 0    ? PTHREAD_MUTEX_RECURSIVE
                     : (flags & ERRORCHECK) != 0 ? PTHREAD_MUTEX_ERRORCHECK
                     : (flags & ADAPTIVE) != 0   ? PTHREAD_MUTEX_ADAPTIVE_NP
                                                 : PTHREAD_MUTEX_NORMAL;
    must(pthread_mutexattr_settype(&attributes, type), "pthread_mutexattr_settype");
    if ((flags & ROBUST) != 0) {
        must(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), "pthread_mutexattr_setrobust");
    }
    if ((flags & SHARED) != 0) {
        must(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), "pthread_mutexattr_setpshared");
    }
    if ((flags & INHERIT) != 0) {
        must(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), "pthread_mutexattr_setprotocol");
    }
    must(pthread_mutex_init(mutex, &attributes), "pthread_mutex_init");
    pthread_mutexattr_destroy(&attributes);
}

static void make_rwlock(pthread_rwlock_t* rwlock, unsigned flags)
{
    pthread_rwlockattr_t attributes;
    must(pthread_rwlockattr_init(&attributes), "pthread_rwlockattr_init");
    if ((flags & SHARED) != 0) {
        must(pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), "pthread_rwlockattr_setpshared");
    }
    if ((flags & WRITERS) != 0) {
        must(pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), "pthread_rwlockattr_setkind_np");
    }
    must(pthread_rwlock_init(rwlock, &attributes), "pthread_rwlock_init");
    pthread_rwlockattr_destroy(&attributes);
}

void lock_make(struct lock* lock, void* object)
{
    lock->object = object;
    switch (lock->kind) {
    case MUTEX: make_mutex(object, lock->flags); return;
    case RWLOCK: make_rwlock(object, lock->flags); return;
    case SPINLOCK:
        must(pthread_spin_init(object, (lock->flags & SHARED) != 0 ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE),
             "pthread_spin_init");
        return;
    case C11_MUTEX:
        must(mtx_init(object, mtx_timed | ((lock->flags & RECURSIVE) != 0 ? mtx_recursive : mtx_plain)) != thrd_success, "mtx_init");
        return;
    }
}

/// Durable locks are made once, in their first run; recovery must have left them free.
void locks_begin(void)
{
    struct lock_slot* const durable = must_have(sp_root("locks", locks_max * sizeof *durable), "sp_root of the locks");
    for (unsigned i = 0; i < plan->lock_count; ++i) {
        struct lock* const lock = &plan->locks[i];
        if ((lock->flags & (DURABLE | GLOBAL)) == 0) {
            lock_make(lock, &volatile_slots[i].lock);
            continue;
        }
        struct lock_slot* const slot = (lock->flags & DURABLE) != 0 ? &durable[i] : (struct lock_slot*)plan->global_locks + i;
        lock->object = &slot->lock;
        if (slot->made == 0) {
            sp_fase_begin();
            lock_make(lock, &slot->lock);
            slot->made = 1;
            sp_fase_end();
        }
    }
}

/// One attempt at a mutex.
static int mutex_attempt(pthread_mutex_t* mutex, enum acquire_way way)
{
    struct timespec until;
    switch (way) {
    case BY_TRY: return pthread_mutex_trylock(mutex);
    case BY_TIMED: until = time_in_us(CLOCK_REALTIME, 300); return pthread_mutex_timedlock(mutex, &until);
    case BY_CLOCK: until = time_in_us(CLOCK_MONOTONIC, 300); return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
    default: return pthread_mutex_lock(mutex);
    }
}

static void mutex_acquire(const struct lock* lock, enum acquire_way way)
{
    pthread_mutex_t* const mutex = lock->object;
    if (way == BY_CLOCK && (lock->flags & INHERIT) != 0) {
        way = BY_TIMED; // The kernel's futex for priority inheritance knows one clock only.
    }
    int error = mutex_attempt(mutex, way);
    while (error == EBUSY || error == ETIMEDOUT) {
        sched_yield();
        error = mutex_attempt(mutex, way);
    }
    if (error == EOWNERDEAD) {
        error = pthread_mutex_consistent(mutex);
    }
    must(error, "a lock call of a mutex");
    if (way == BY_TWICE && (lock->flags & RECURSIVE) != 0) {
        must(pthread_mutex_lock(mutex), "pthread_mutex_lock again");
        must(pthread_mutex_unlock(mutex), "pthread_mutex_unlock once");
    }
    if (way == BY_TWICE && (lock->flags & ERRORCHECK) != 0 && pthread_mutex_lock(mutex) != EDEADLK) {
        end_by_call("pthread_mutex_lock of a mutex that this thread holds and that checks errors", 0);
    }
}

static int rwlock_attempt(pthread_rwlock_t* rwlock, enum acquire_way way, bool reads)
{
    struct timespec until;
    switch (way) {
    case BY_TRY: return reads ? pthread_rwlock_tryrdlock(rwlock) : pthread_rwlock_trywrlock(rwlock);
    case BY_TIMED:
        until = time_in_us(CLOCK_REALTIME, 300);
        return reads ? pthread_rwlock_timedrdlock(rwlock, &until) : pthread_rwlock_timedwrlock(rwlock, &until);
    case BY_CLOCK:
        until = time_in_us(CLOCK_MONOTONIC, 300);
        return reads ? pthread_rwlock_clockrdlock(rwlock, CLOCK_MONOTONIC, &until)
                     : pthread_rwlock_clockwrlock(rwlock, CLOCK_MONOTONIC, &until);
    default: return reads ? pthread_rwlock_rdlock(rwlock) : pthread_rwlock_wrlock(rwlock);
    }
}

static void rwlock_acquire(pthread_rwlock_t* rwlock, enum acquire_way way, bool reads)
{
    int error = rwlock_attempt(rwlock, way, reads);
    while (error == EBUSY || error == ETIMEDOUT || error == EAGAIN) {
        sched_yield();
        error = rwlock_attempt(rwlock, way, reads);
    }
    must(error, "a lock call of a read-write lock");
}

static void spinlock_acquire(void* spinlock, enum acquire_way way)
{
    if (way != BY_TRY) {
        must(pthread_spin_lock(spinlock), "pthread_spin_lock");
        return;
    }
    while (pthread_spin_trylock(spinlock) == EBUSY) {
        sched_yield();
    }
}

static void c11_acquire(void* object, enum acquire_way way)
{
    int result = thrd_busy;
    while (result == thrd_busy || result == thrd_timedout) {
        if (way == BY_TRY) {
            result = mtx_trylock(object);
        } else if (way == BY_TIMED) {
            const struct timespec until = time_in_us(CLOCK_REALTIME, 300);
            result = mtx_timedlock(object, &until);
        } else {
            result = mtx_lock(object);
        }
    }
    must(result != thrd_success, "a lock call of a mtx_t");
}

void lock_acquire(struct lock* lock, enum acquire_way way)
{
    switch (lock->kind) {
    case MUTEX: mutex_acquire(lock, way); return;
    case RWLOCK: rwlock_acquire(lock->object, way, false); return;
    case SPINLOCK: spinlock_acquire(lock->object, way); return;
    case C11_MUTEX: c11_acquire(lock->object, way); return;
    }
}

void lock_read(struct lock* lock, enum acquire_way way)
{
    if (lock->kind == RWLOCK) {
        rwlock_acquire(lock->object, way, true);
    } else {
        lock_acquire(lock, way);
    }
}

void lock_release(struct lock* lock)
{
    switch (lock->kind) {
    case MUTEX: must(pthread_mutex_unlock(lock->object), "pthread_mutex_unlock"); return;
    case RWLOCK: must(pthread_rwlock_unlock(lock->object), "pthread_rwlock_unlock"); return;
    case SPINLOCK: must(pthread_spin_unlock(lock->object), "pthread_spin_unlock"); return;
    case C11_MUTEX: must(mtx_unlock(lock->object) != thrd_success, "mtx_unlock"); return;
    }
}
