// Reader-writer locks of the ready-made containers: each is a std::shared_mutex in the pool. The explorer has no shims, so these calls of
// the C library tell the runtime of each, as libstillpoint.so does (told_mutex.hpp): recovery makes a captured lock free.

#include <cstdint>
#include <dlfcn.h>
#include <pthread.h>

#include "core/units.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/section_ends.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::explorer {

namespace {

using Call = int (*)(pthread_rwlock_t*);

Call next_definition(const char* name) noexcept { return reinterpret_cast<Call>(dlsym(RTLD_NEXT, name)); }

/// Other locks of the explorer tell by themselves, or need not.
bool is_durable(const void* lock) noexcept { return reinterpret_cast<std::uintptr_t>(lock) - window_base < window_bytes; }

int acquire(Call call, pthread_rwlock_t* lock) noexcept
{
    if (is_durable(lock)) {
        fase::enter(lock, LockKind::rwlock);
    }
    return call(lock);
}

int release(Call call, pthread_rwlock_t* lock) noexcept
{
    if (!is_durable(lock)) {
        return call(lock);
    }
    if (section_ends::are_told()) {
        section_ends::tell_release(lock);
    }
    const int result = call(lock);
    fase::leave(lock);
    if (section_ends::are_told()) {
        section_ends::tell_ended();
    }
    return result;
}

}  // namespace

}  // namespace stillpoint::explorer

extern "C" int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept
{
    static const auto next = stillpoint::explorer::next_definition("pthread_rwlock_rdlock");
    return stillpoint::explorer::acquire(next, lock);
}

extern "C" int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept
{
    static const auto next = stillpoint::explorer::next_definition("pthread_rwlock_wrlock");
    return stillpoint::explorer::acquire(next, lock);
}

extern "C" int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept
{
    static const auto next = stillpoint::explorer::next_definition("pthread_rwlock_unlock");
    return stillpoint::explorer::release(next, lock);
}
