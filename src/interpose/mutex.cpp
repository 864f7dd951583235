// POSIX mutexes of every kind. A robust mutex that is acquired from a dead owner (EOWNERDEAD) is held, so it
// counts; every other error means that nothing was acquired or released.

#include <cerrno>

#include "interpose/real.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/sync_objects.hpp"

using stillpoint::LockKind;
namespace fase = stillpoint::fase;

namespace {

[[gnu::always_inline]] inline int settle(const pthread_mutex_t* mutex, int result) noexcept
{
    if (result != 0 && result != EOWNERDEAD) [[unlikely]] {
        fase::leave(mutex);
    }
    return result;
}

}  // namespace

SHIM int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept
{
    fase::enter(mutex, LockKind::mutex);
    return settle(mutex, REAL(pthread_mutex_lock)(mutex));
}

SHIM int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept
{
    fase::enter(mutex, LockKind::mutex);
    return settle(mutex, REAL(pthread_mutex_trylock)(mutex));
}

SHIM int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* deadline) noexcept
{
    fase::enter(mutex, LockKind::mutex);
    return settle(mutex, REAL(pthread_mutex_timedlock)(mutex, deadline));
}

SHIM int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                 const timespec* deadline) noexcept
{
    fase::enter(mutex, LockKind::mutex);
    return settle(mutex, REAL(pthread_mutex_clocklock)(mutex, clock, deadline));
}

SHIM int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept
{
    const int result = REAL(pthread_mutex_unlock)(mutex);
    if (result == 0) [[likely]] {
        fase::leave(mutex);
    }
    return result;
}

SHIM int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept
{
    const int result = REAL(pthread_mutex_destroy)(mutex);
    if (result == 0) {
        stillpoint::fase_forget_lock(mutex);
        stillpoint::sync_object_destroyed(mutex);
    }
    return result;
}
