// POSIX mutexes of every kind. A robust mutex that is acquired from a dead owner (EOWNERDEAD) is held, so it
// counts; every other error means that nothing was acquired or released.

#include "interpose/counted.hpp"
#include "interpose/real.hpp"
#include "runtime/sync_objects.hpp"

using stillpoint::LockKind;
using stillpoint::interpose::acquire;
using stillpoint::interpose::acquire_fallibly;
using stillpoint::interpose::acquire_surely;
using stillpoint::interpose::release_otherwise;
using stillpoint::interpose::release_surely;
using stillpoint::real::Addresses;

namespace {

/// PTHREAD_MUTEX_INITIALIZER's kind, and std::mutex's: locking and unlocking it never fails. The kind's place
/// is part of glibc's binary interface.
bool cannot_fail(const pthread_mutex_t& mutex) noexcept { return mutex.__data.__kind == 0; }

}  // namespace

namespace stillpoint::interpose {

void forget(const void* lock) noexcept
{
    fase_forget_lock(lock);
    sync_object_destroyed(lock);
}

}  // namespace stillpoint::interpose

SHIM int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept
{
    if (cannot_fail(*mutex)) [[likely]] {
        return acquire_surely<LockKind::mutex, &Addresses::pthread_mutex_lock>(mutex);
    }
    return acquire_fallibly<LockKind::mutex, &Addresses::pthread_mutex_lock>(mutex);
}

SHIM int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept
{
    return acquire<LockKind::mutex, &Addresses::pthread_mutex_trylock>(mutex);
}

SHIM int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* deadline) noexcept
{
    return acquire<LockKind::mutex, &Addresses::pthread_mutex_timedlock>(mutex, deadline);
}

SHIM int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                 const timespec* deadline) noexcept
{
    return acquire<LockKind::mutex, &Addresses::pthread_mutex_clocklock>(mutex, clock, deadline);
}

SHIM int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept
{
    if (cannot_fail(*mutex)) [[likely]] {
        return release_surely<&Addresses::pthread_mutex_unlock>(mutex);
    }
    return release_otherwise<&Addresses::pthread_mutex_unlock>(mutex);
}

SHIM int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept
{
    const int result = REAL(pthread_mutex_destroy)(mutex);
    if (result == 0) {
        stillpoint::interpose::forget(mutex);
    }
    return result;
}
