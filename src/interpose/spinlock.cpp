// POSIX spinlocks.

#include "interpose/counted.hpp"
#include "interpose/real.hpp"

using stillpoint::LockKind;
using stillpoint::interpose::acquire;
using stillpoint::interpose::release;
using stillpoint::real::Addresses;

SHIM int pthread_spin_lock(pthread_spinlock_t* spinlock) noexcept
{
    return acquire<LockKind::spinlock, &Addresses::pthread_spin_lock>(spinlock);
}

SHIM int pthread_spin_trylock(pthread_spinlock_t* spinlock) noexcept
{
    return acquire<LockKind::spinlock, &Addresses::pthread_spin_trylock>(spinlock);
}

SHIM int pthread_spin_unlock(pthread_spinlock_t* spinlock) noexcept
{
    return release<&Addresses::pthread_spin_unlock>(spinlock);
}

SHIM int pthread_spin_destroy(pthread_spinlock_t* spinlock) noexcept
{
    const int result = REAL(pthread_spin_destroy)(spinlock);
    if (result == 0) {
        stillpoint::interpose::forget(const_cast<const int*>(spinlock));
    }
    return result;
}
