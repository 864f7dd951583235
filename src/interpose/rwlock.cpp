// POSIX read-write locks. A reader is inside a FASE too: it must not see half of a checkpoint's stop,
// and one unlock function serves both.

#include "interpose/real.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/sync_objects.hpp"

using stillpoint::LockKind;
namespace fase = stillpoint::fase;

namespace {

[[gnu::always_inline]] inline int settle(const pthread_rwlock_t* rwlock, int result) noexcept
{
    if (result != 0) [[unlikely]] {
        fase::leave(rwlock);
    }
    return result;
}

}  // namespace

SHIM int pthread_rwlock_rdlock(pthread_rwlock_t* rwlock) noexcept
{
    fase::enter(rwlock, LockKind::rwlock);
    return settle(rwlock, REAL(pthread_rwlock_rdlock)(rwlock));
}

SHIM int pthread_rwlock_tryrdlock(pthread_rwlock_t* rwlock) noexcept
{
    fase::enter(rwlock, LockKind::rwlock);
    return settle(rwlock, REAL(pthread_rwlock_tryrdlock)(rwlock));
}

SHIM int pthread_rwlock_timedrdlock(pthread_rwlock_t* rwlock, const timespec* deadline) noexcept
{
    fase::enter(rwlock, LockKind::rwlock);
    return settle(rwlock, REAL(pthread_rwlock_timedrdlock)(rwlock, deadline));
}

SHIM int pthread_rwlock_clockrdlock(pthread_rwlock_t* rwlock, clockid_t clock,
                                    const timespec* deadline) noexcept
{
    fase::enter(rwlock, LockKind::rwlock);
    return settle(rwlock, REAL(pthread_rwlock_clockrdlock)(rwlock, clock, deadline));
}

SHIM int pthread_rwlock_wrlock(pthread_rwlock_t* rwlock) noexcept
{
    fase::enter(rwlock, LockKind::rwlock);
    return settle(rwlock, REAL(pthread_rwlock_wrlock)(rwlock));
}

SHIM int pthread_rwlock_trywrlock(pthread_rwlock_t* rwlock) noexcept
{
    fase::enter(rwlock, LockKind::rwlock);
    return settle(rwlock, REAL(pthread_rwlock_trywrlock)(rwlock));
}

SHIM int pthread_rwlock_timedwrlock(pthread_rwlock_t* rwlock, const timespec* deadline) noexcept
{
    fase::enter(rwlock, LockKind::rwlock);
    return settle(rwlock, REAL(pthread_rwlock_timedwrlock)(rwlock, deadline));
}

SHIM int pthread_rwlock_clockwrlock(pthread_rwlock_t* rwlock, clockid_t clock,
                                    const timespec* deadline) noexcept
{
    fase::enter(rwlock, LockKind::rwlock);
    return settle(rwlock, REAL(pthread_rwlock_clockwrlock)(rwlock, clock, deadline));
}

SHIM int pthread_rwlock_unlock(pthread_rwlock_t* rwlock) noexcept
{
    const int result = REAL(pthread_rwlock_unlock)(rwlock);
    if (result == 0) [[likely]] {
        fase::leave(rwlock);
    }
    return result;
}

SHIM int pthread_rwlock_destroy(pthread_rwlock_t* rwlock) noexcept
{
    const int result = REAL(pthread_rwlock_destroy)(rwlock);
    if (result == 0) {
        stillpoint::fase_forget_lock(rwlock);
        stillpoint::sync_object_destroyed(rwlock);
    }
    return result;
}
