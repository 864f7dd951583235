// C11 mutexes. glibc builds them on its own mutexes without going through the symbols of mutex.cpp.

#include "interpose/real.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/sync_objects.hpp"

using stillpoint::LockKind;
namespace fase = stillpoint::fase;

namespace {

int settle(const mtx_t* mutex, int result) noexcept
{
    if (result != thrd_success) [[unlikely]] {
        fase::leave(mutex);
    }
    return result;
}

}  // namespace

SHIM int mtx_lock(mtx_t* mutex)
{
    fase::enter(mutex, LockKind::mutex);
    return settle(mutex, REAL(mtx_lock)(mutex));
}

SHIM int mtx_trylock(mtx_t* mutex)
{
    fase::enter(mutex, LockKind::mutex);
    return settle(mutex, REAL(mtx_trylock)(mutex));
}

SHIM int mtx_timedlock(mtx_t* mutex, const timespec* deadline)
{
    fase::enter(mutex, LockKind::mutex);
    return settle(mutex, REAL(mtx_timedlock)(mutex, deadline));
}

SHIM int mtx_unlock(mtx_t* mutex)
{
    const int result = REAL(mtx_unlock)(mutex);
    if (result == thrd_success) [[likely]] {
        fase::leave(mutex);
    }
    return result;
}

SHIM void mtx_destroy(mtx_t* mutex)
{
    REAL(mtx_destroy)(mutex);
    stillpoint::fase_forget_lock(mutex);
    stillpoint::sync_object_destroyed(mutex);
}
