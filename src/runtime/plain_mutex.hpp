#pragma once
// glibc's mutex of the plain kind (PTHREAD_MUTEX_INITIALIZER, std::mutex), locked and unlocked in line where
// no thread is in the way; with a waiter, or a holder, the caller turns to libc.
//
// Why: the function behind an interposed pthread_mutex_lock must be called, and that call alone costs 40 % of an
// uncontended lock + unlock, the accounting 5 %. In line, the sum is below libc's own cost.
// The assumptions: the struct's layout, which is part of glibc's binary interface (static initialisers), and that
// __lock is 0 when free and 1 when held without waiters, __owner is the holder's thread id, and __nusers counts
// holders. So it has been since glibc 2.3; plain_mutex_is_as_expected() verifies it when the library is loaded, and
// where it does not hold every lock goes to libc.

#include <pthread.h>

#include "core/sync.hpp"

namespace stillpoint {

/// Locking and unlocking a mutex of this kind cannot fail.
[[gnu::always_inline]] inline bool is_plain_mutex(const pthread_mutex_t& mutex) noexcept { return mutex.__data.__kind == 0; }

/// True: acquired. False: a thread holds it; nothing is changed. Plain mutexes only.
[[gnu::always_inline]] inline bool try_lock_plain(pthread_mutex_t& mutex, int thread_id) noexcept
{
    int seen = 0;
    if (!sync::AtomicRef{mutex.__data.__lock}.compare_exchange_strong(seen, 1, std::memory_order_acquire, std::memory_order_relaxed))
        [[unlikely]] {
        return false;
    }
    mutex.__data.__owner = thread_id;
    ++mutex.__data.__nusers;
    return true;
}

/// True: released. False: a thread waits, or the mutex is not held; nothing is changed. Plain mutexes only.
[[gnu::always_inline]] inline bool try_unlock_plain(pthread_mutex_t& mutex) noexcept
{
    const int owner = mutex.__data.__owner;
    mutex.__data.__owner = 0;  // Before the release: afterwards it is the next holder's.
    --mutex.__data.__nusers;
    int seen = 1;
    if (sync::AtomicRef{mutex.__data.__lock}.compare_exchange_strong(seen, 0, std::memory_order_release, std::memory_order_relaxed))
        [[likely]] {
        return true;
    }
    mutex.__data.__owner = owner;
    ++mutex.__data.__nusers;
    return false;
}

/// The functions of libc that must agree with the two above.
struct MutexFunctions {
    int (*lock)(pthread_mutex_t*) noexcept;
    int (*trylock)(pthread_mutex_t*) noexcept;
    int (*unlock)(pthread_mutex_t*) noexcept;
};

/// Locks and unlocks with both, in turn, and compares what each leaves behind.
[[nodiscard]] bool plain_mutex_is_as_expected(const MutexFunctions& libc) noexcept;

}  // namespace stillpoint
