// POSIX spinlocks. glibc never fails to lock or unlock one.

#include "interpose/counted.hpp"
#include "interpose/real.hpp"

using stillpoint::LockKind;
using stillpoint::interpose::acquire;
using stillpoint::interpose::acquire_surely;
using stillpoint::interpose::release_surely;
using stillpoint::real::Addresses;

SHIM int pthread_spin_lock(pthread_spinlock_t* spinlock) noexcept
{
    return acquire_surely<LockKind::spinlock, &Addresses::pthread_spin_lock>(spinlock);
}

SHIM int pthread_spin_trylock(pthread_spinlock_t* spinlock) noexcept
{
    return acquire<LockKind::spinlock, &Addresses::pthread_spin_trylock>(spinlock);
}

SHIM int pthread_spin_unlock(pthread_spinlock_t* spinlock) noexcept { return release_surely<&Addresses::pthread_spin_unlock>(spinlock); }

SHIM int pthread_spin_destroy(pthread_spinlock_t* spinlock) noexcept
{
    const int result = REAL(pthread_spin_destroy)(spinlock);
    if (result == 0) {
        stillpoint::interpose::forget(const_cast<const int*>(spinlock));
    }
    return result;
}
