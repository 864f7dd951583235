#include "runtime/plain_mutex.hpp"

#include <cerrno>
#include <unistd.h>

namespace stillpoint {

namespace {

bool is_held_by(const pthread_mutex_t& mutex, int thread_id) noexcept
{
    return mutex.__data.__lock == 1 && mutex.__data.__owner == thread_id && mutex.__data.__nusers == 1 && mutex.__data.__count == 0 &&
           mutex.__data.__kind == 0;
}

bool is_free(const pthread_mutex_t& mutex) noexcept
{
    return mutex.__data.__lock == 0 && mutex.__data.__owner == 0 && mutex.__data.__nusers == 0 && mutex.__data.__count == 0 &&
           mutex.__data.__kind == 0;
}

}  // namespace

bool plain_mutex_is_as_expected(const MutexFunctions& libc) noexcept
{
    const int self = gettid();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    // Libc's lock, our unlock.
    if (libc.lock(&mutex) != 0 || !is_held_by(mutex, self) || try_lock_plain(mutex, self) || !try_unlock_plain(mutex) || !is_free(mutex)) {
        return false;
    }
    // Our lock, libc's unlock.
    if (!try_lock_plain(mutex, self) || !is_held_by(mutex, self) || libc.trylock(&mutex) != EBUSY || libc.unlock(&mutex) != 0 ||
        !is_free(mutex)) {
        return false;
    }
    // A free one is not unlocked; one with waiters is left to libc.
    if (try_unlock_plain(mutex) || !is_free(mutex) || libc.lock(&mutex) != 0) {
        return false;
    }
    mutex.__data.__lock = 2;
    const bool left_alone = !try_unlock_plain(mutex) && mutex.__data.__owner == self && mutex.__data.__nusers == 1;
    return left_alone && libc.unlock(&mutex) == 0 && is_free(mutex);
}

}  // namespace stillpoint
