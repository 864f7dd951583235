// POSIX read-write locks. A reader is inside a FASE too: it must not see half of a checkpoint's stop,
// and one unlock function, which glibc never lets fail, serves both.

#include "interpose/counted.hpp"
#include "interpose/real.hpp"

using stillpoint::LockKind;
using stillpoint::interpose::acquire;
using stillpoint::interpose::release_surely;
using stillpoint::real::Addresses;

SHIM int pthread_rwlock_rdlock(pthread_rwlock_t* rwlock) noexcept
{
    return acquire<LockKind::rwlock, &Addresses::pthread_rwlock_rdlock>(rwlock);
}

SHIM int pthread_rwlock_tryrdlock(pthread_rwlock_t* rwlock) noexcept
{
    return acquire<LockKind::rwlock, &Addresses::pthread_rwlock_tryrdlock>(rwlock);
}

SHIM int pthread_rwlock_timedrdlock(pthread_rwlock_t* rwlock, const timespec* deadline) noexcept
{
    return acquire<LockKind::rwlock, &Addresses::pthread_rwlock_timedrdlock>(rwlock, deadline);
}

SHIM int pthread_rwlock_clockrdlock(pthread_rwlock_t* rwlock, clockid_t clock, const timespec* deadline) noexcept
{
    return acquire<LockKind::rwlock, &Addresses::pthread_rwlock_clockrdlock>(rwlock, clock, deadline);
}

SHIM int pthread_rwlock_wrlock(pthread_rwlock_t* rwlock) noexcept
{
    return acquire<LockKind::rwlock, &Addresses::pthread_rwlock_wrlock>(rwlock);
}

SHIM int pthread_rwlock_trywrlock(pthread_rwlock_t* rwlock) noexcept
{
    return acquire<LockKind::rwlock, &Addresses::pthread_rwlock_trywrlock>(rwlock);
}

SHIM int pthread_rwlock_timedwrlock(pthread_rwlock_t* rwlock, const timespec* deadline) noexcept
{
    return acquire<LockKind::rwlock, &Addresses::pthread_rwlock_timedwrlock>(rwlock, deadline);
}

SHIM int pthread_rwlock_clockwrlock(pthread_rwlock_t* rwlock, clockid_t clock, const timespec* deadline) noexcept
{
    return acquire<LockKind::rwlock, &Addresses::pthread_rwlock_clockwrlock>(rwlock, clock, deadline);
}

SHIM int pthread_rwlock_unlock(pthread_rwlock_t* rwlock) noexcept { return release_surely<&Addresses::pthread_rwlock_unlock>(rwlock); }

SHIM int pthread_rwlock_destroy(pthread_rwlock_t* rwlock) noexcept
{
    const int result = REAL(pthread_rwlock_destroy)(rwlock);
    if (result == 0) {
        stillpoint::interpose::forget(rwlock);
    }
    return result;
}
