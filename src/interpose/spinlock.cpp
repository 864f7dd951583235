// POSIX spinlocks.

#include "interpose/real.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/sync_objects.hpp"

using stillpoint::LockKind;
namespace fase = stillpoint::fase;

namespace {

/// Only its address is used: the lock itself is volatile.
const void* name_of(pthread_spinlock_t* spinlock) noexcept
{
    return const_cast<const int*>(spinlock);
}

}  // namespace

SHIM int pthread_spin_lock(pthread_spinlock_t* spinlock) noexcept
{
    fase::enter(name_of(spinlock), LockKind::spinlock);
    const int result = REAL(pthread_spin_lock)(spinlock);
    if (result != 0) [[unlikely]] {
        fase::leave(name_of(spinlock));
    }
    return result;
}

SHIM int pthread_spin_trylock(pthread_spinlock_t* spinlock) noexcept
{
    fase::enter(name_of(spinlock), LockKind::spinlock);
    const int result = REAL(pthread_spin_trylock)(spinlock);
    if (result != 0) {
        fase::leave(name_of(spinlock));
    }
    return result;
}

SHIM int pthread_spin_unlock(pthread_spinlock_t* spinlock) noexcept
{
    const int result = REAL(pthread_spin_unlock)(spinlock);
    if (result == 0) [[likely]] {
        fase::leave(name_of(spinlock));
    }
    return result;
}

SHIM int pthread_spin_destroy(pthread_spinlock_t* spinlock) noexcept
{
    const int result = REAL(pthread_spin_destroy)(spinlock);
    if (result == 0) {
        stillpoint::fase_forget_lock(name_of(spinlock));
        stillpoint::sync_object_destroyed(name_of(spinlock));
    }
    return result;
}
