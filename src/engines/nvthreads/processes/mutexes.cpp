// Mutexes of every kind, spin locks, reader-writer locks.
//
// A mutex's word is the number of the thread that holds it, 0 if it is free, with a bit if others wait: so its holder is known from
// the same moment. A reader-writer lock's word counts its changes: threads that must wait sleep until it changes.
//
// A lock is entered into the thread's list before it is taken. Of what a dead thread has in its list, it held what has its number.

#include <cerrno>

#include "engines/nvthreads/processes/sync_calls.hpp"
#include "engines/nvthreads/processes/worker.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::nvthreads::processes {

namespace {

enum Mark : std::uint32_t {
    owner_died = 1,
    inconsistent = 2,     ///< a robust mutex was handed on after that, and is not consistent again
    not_recoverable = 4,
    is_rwlock = 8,
    of_robust = 16,
};

constexpr std::uint32_t writer = 1u << 31;      ///< beside the writer's number
constexpr std::uint32_t waited_for = 1u << 31;  ///< beside the holder's

constexpr int kind_mask = 3;
constexpr int robust_bit = 16;

int kind_of(const pthread_mutex_t& mutex) noexcept { return mutex.__data.__kind & kind_mask; }
bool is_robust(const pthread_mutex_t& mutex) noexcept { return (mutex.__data.__kind & robust_bit) != 0; }

/// One that processes may share, as libc knows it: a robust one is such, too. In volatile memory it works as it is.
bool is_shared_by_libc(const pthread_mutex_t& mutex) noexcept
{
    constexpr int process_shared_bit = 128;
    return (mutex.__data.__kind & process_shared_bit) != 0 && !stillpoint_is_persistent(&mutex);
}

int acquire_through_libc(pthread_mutex_t* mutex, const Deadline& deadline, bool waits) noexcept
{
    static auto* const lock = libc<int(pthread_mutex_t*)>("pthread_mutex_lock");
    static auto* const trylock = libc<int(pthread_mutex_t*)>("pthread_mutex_trylock");
    static auto* const clocklock = libc<int(pthread_mutex_t*, clockid_t, const timespec*)>("pthread_mutex_clocklock");
    const int result = !waits                       ? trylock(mutex)
                       : deadline.time() == nullptr ? lock(mutex)
                                                    : clocklock(mutex, deadline.clock(), deadline.time());
    Worker::own().note_acquire();
    return result;
}

std::uint32_t holder_of(const SyncState& state) noexcept { return state.word.load(std::memory_order_relaxed) & ~waited_for; }

/// True: the word is ours. False: the deadline is past, or the caller does not wait.
bool take_word(SyncState& state, std::uint32_t number, const Deadline& deadline, bool waits) noexcept
{
    constexpr int spins_max = 100;
    std::uint32_t seen = 0;
    for (int spins = 0; spins < (waits ? spins_max : 1); ++spins) {
        seen = 0;
        if (state.word.compare_exchange_strong(seen, number, std::memory_order_acquire)) {
            return true;
        }
        arch::spin_pause();
    }
    while (waits) {
        seen = 0;
        // Others may still wait.
        if (state.word.compare_exchange_strong(seen, number | waited_for, std::memory_order_acquire)) {
            return true;
        }
        if ((seen & waited_for) == 0 && !state.word.compare_exchange_strong(seen, seen | waited_for, std::memory_order_relaxed)) {
            continue;
        }
        const std::uint64_t left = deadline.ns_left();
        if (left == 0) {
            return false;
        }
        shared_wait(state.word, seen | waited_for, left);
    }
    return false;
}

void give_word(SyncState& state) noexcept
{
    if ((state.word.exchange(0, std::memory_order_release) & waited_for) != 0) {
        shared_wake(state.word, 1);
    }
}

/// Takes the word, and settles what an earlier holder left.
int take(SyncState& state, bool robust, Worker& worker, const Deadline& deadline, bool waits) noexcept
{
    worker.held().add(state, false);
    if (!take_word(state, worker.number(), deadline, waits)) {
        worker.held().remove(state);
        return waits ? ETIMEDOUT : EBUSY;
    }
    const std::uint32_t marks = state.marks.load(std::memory_order_relaxed);
    if ((marks & not_recoverable) != 0) [[unlikely]] {
        give_word(state);
        worker.held().remove(state);
        return ENOTRECOVERABLE;
    }
    state.count.store(1, std::memory_order_relaxed);
    worker.note_acquire();
    if (robust || marks != 0) [[unlikely]] {
        const bool died = (marks & owner_died) != 0;
        state.marks.store(robust ? of_robust | (died ? inconsistent : 0u) : 0u, std::memory_order_relaxed);
        return robust && died ? EOWNERDEAD : 0;
    }
    return 0;
}

}  // namespace

int acquire_mutex(pthread_mutex_t* mutex, const Deadline& deadline, bool waits) noexcept
{
    if (is_shared_by_libc(*mutex)) [[unlikely]] {
        return acquire_through_libc(mutex, deadline, waits);
    }
    Worker& worker = Worker::own();
    SyncState& state = worker.control().sync.state_of(mutex);
    const int kind = kind_of(*mutex);
    if (holder_of(state) == worker.number()) [[unlikely]] {
        if (kind == PTHREAD_MUTEX_RECURSIVE) {
            state.count.fetch_add(1, std::memory_order_relaxed);
            return 0;
        }
        if (waits && kind == PTHREAD_MUTEX_ERRORCHECK) {
            return EDEADLK;
        }
    }
    if (const int invalid = deadline.check(); invalid != 0) [[unlikely]] {
        return invalid;
    }
    return take(state, is_robust(*mutex), worker, deadline, waits);
}

int release_mutex(pthread_mutex_t* mutex) noexcept
{
    if (is_shared_by_libc(*mutex)) [[unlikely]] {
        static auto* const unlock = libc<int(pthread_mutex_t*)>("pthread_mutex_unlock");
        return unlock(mutex);
    }
    Worker& worker = Worker::own();
    SyncState& state = worker.control().sync.state_of(mutex);
    const bool robust = is_robust(*mutex);
    if ((robust || kind_of(*mutex) == PTHREAD_MUTEX_RECURSIVE || kind_of(*mutex) == PTHREAD_MUTEX_ERRORCHECK) &&
        holder_of(state) != worker.number()) {
        return EPERM;
    }
    if (kind_of(*mutex) == PTHREAD_MUTEX_RECURSIVE && state.count.fetch_sub(1, std::memory_order_relaxed) > 1) {
        return 0;
    }
    if ((state.marks.load(std::memory_order_relaxed) & inconsistent) != 0) [[unlikely]] {
        state.marks.store(of_robust | not_recoverable, std::memory_order_relaxed);
    }
    give_word(state);
    worker.held().remove(state);
    return 0;
}

namespace {

// ---- Reader-writer locks: `count` has the readers, or `writer` and its number ---------------------

bool is_writer(const SyncState& state, std::uint32_t number) noexcept
{
    return state.count.load(std::memory_order_relaxed) == (writer | number);
}

bool try_count(SyncState& state, std::uint32_t number, bool for_writing) noexcept
{
    std::uint32_t seen = state.count.load(std::memory_order_relaxed);
    while (for_writing ? seen == 0 : (seen & writer) == 0) {
        if (state.count.compare_exchange_weak(seen, for_writing ? writer | number : seen + 1, std::memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

void tell_change(SyncState& state) noexcept
{
    state.word.fetch_add(1, std::memory_order_seq_cst);
    if (state.waiters.load(std::memory_order_seq_cst) != 0) {
        shared_wake(state.word);
    }
}

int acquire_rwlock(pthread_rwlock_t* lock, bool for_writing, const Deadline& deadline, bool waits) noexcept
{
    Worker& worker = Worker::own();
    SyncState& state = worker.control().sync.state_of(lock);
    if (const int invalid = deadline.check(); invalid != 0) {
        return invalid;
    }
    if (waits && is_writer(state, worker.number())) {
        return EDEADLK;
    }
    state.marks.store(is_rwlock, std::memory_order_relaxed);
    if (for_writing) {
        worker.held().add(state, false);
    }
    while (!try_count(state, worker.number(), for_writing)) {
        const std::uint64_t left = waits ? deadline.ns_left() : 0;
        if (left == 0) {
            if (for_writing) {
                worker.held().remove(state);
            }
            return waits ? ETIMEDOUT : EBUSY;
        }
        state.waiters.fetch_add(1, std::memory_order_seq_cst);
        const std::uint32_t seen = state.word.load(std::memory_order_seq_cst);
        const std::uint32_t count = state.count.load(std::memory_order_seq_cst);
        if (for_writing ? count != 0 : (count & writer) != 0) {
            shared_wait(state.word, seen, left);
        }
        state.waiters.fetch_sub(1, std::memory_order_seq_cst);
    }
    if (!for_writing) {
        worker.held().add(state, true);
    }
    worker.note_acquire();
    return 0;
}

void uncount(SyncState& state, bool is_shared) noexcept
{
    if (is_shared) {
        state.count.fetch_sub(1, std::memory_order_release);
    } else {
        state.count.store(0, std::memory_order_release);
    }
    tell_change(state);
}

}  // namespace

bool is_of_robust_mutex(const SyncState& state) noexcept { return (state.marks.load(std::memory_order_relaxed) & of_robust) != 0; }

void release_for_dead(SyncState& state, bool is_shared, std::uint32_t thread) noexcept
{
    if ((state.marks.load(std::memory_order_relaxed) & is_rwlock) != 0) {
        if (is_shared || is_writer(state, thread)) {
            uncount(state, is_shared);
        } else {
            tell_change(state);
        }
        return;
    }
    if (holder_of(state) == thread) {
        state.marks.fetch_or(owner_died, std::memory_order_relaxed);
        give_word(state);
    } else {
        // The thread was killed between its release and the wake-up of another, or had been woken and held the mutex not yet.
        shared_wake(state.word, 1);
    }
}

namespace {

int as_c11(int result) noexcept
{
    switch (result) {
    case 0: return thrd_success;
    case EBUSY: return thrd_busy;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
    }
}

pthread_mutex_t* posix(mtx_t* mutex) noexcept { return reinterpret_cast<pthread_mutex_t*>(mutex); }

}  // namespace

namespace calls {

int mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) noexcept
{
    static auto* const init = libc<int(pthread_mutex_t*, const pthread_mutexattr_t*)>("pthread_mutex_init");
    const int result = init(mutex, attributes);
    if (result == 0) {
        Worker::own().control().sync.reset(mutex);
    }
    return result;
}

int mtx_lock_c11(mtx_t* mutex) noexcept { return as_c11(mutex_lock(posix(mutex))); }
int mtx_trylock_c11(mtx_t* mutex) noexcept { return as_c11(mutex_trylock(posix(mutex))); }
int mtx_timedlock_c11(mtx_t* mutex, const timespec* time) noexcept { return as_c11(mutex_timedlock(posix(mutex), time)); }
int mtx_unlock_c11(mtx_t* mutex) noexcept { return as_c11(mutex_unlock(posix(mutex))); }
void mtx_destroy_c11(mtx_t* mutex) noexcept { static_cast<void>(mutex_destroy(posix(mutex))); }

int mutex_lock(pthread_mutex_t* mutex) noexcept { return acquire_mutex(mutex, {}, true); }
int mutex_trylock(pthread_mutex_t* mutex) noexcept { return acquire_mutex(mutex, {}, false); }
int mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) noexcept { return acquire_mutex(mutex, {CLOCK_REALTIME, time}, true); }
int mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* time) noexcept
{
    return acquire_mutex(mutex, {clock, time}, true);
}
int mutex_unlock(pthread_mutex_t* mutex) noexcept { return release_mutex(mutex); }

int mutex_destroy(pthread_mutex_t* mutex) noexcept
{
    if (is_shared_by_libc(*mutex)) {
        static auto* const destroy = libc<int(pthread_mutex_t*)>("pthread_mutex_destroy");
        return destroy(mutex);
    }
    SyncState& state = Worker::own().control().sync.state_of(mutex);
    if (state.word.load(std::memory_order_relaxed) != 0) {
        return EBUSY;
    }
    Worker::own().control().sync.reset(mutex);
    return 0;
}

int mutex_consistent(pthread_mutex_t* mutex) noexcept
{
    if (is_shared_by_libc(*mutex)) {
        static auto* const make_consistent = libc<int(pthread_mutex_t*)>("pthread_mutex_consistent");
        return make_consistent(mutex);
    }
    SyncState& state = Worker::own().control().sync.state_of(mutex);
    if (!is_robust(*mutex) || (state.marks.load(std::memory_order_relaxed) & inconsistent) == 0) {
        return EINVAL;
    }
    state.marks.store(of_robust, std::memory_order_relaxed);
    return 0;
}

int rwlock_init(pthread_rwlock_t* lock, const pthread_rwlockattr_t* attributes) noexcept
{
    static auto* const init = libc<int(pthread_rwlock_t*, const pthread_rwlockattr_t*)>("pthread_rwlock_init");
    Worker::own().control().sync.reset(lock);
    return init(lock, attributes);
}

int rwlock_rdlock(pthread_rwlock_t* lock) noexcept { return acquire_rwlock(lock, false, {}, true); }
int rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept { return acquire_rwlock(lock, false, {}, false); }
int rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* time) noexcept
{
    return acquire_rwlock(lock, false, {CLOCK_REALTIME, time}, true);
}
int rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) noexcept
{
    return acquire_rwlock(lock, false, {clock, time}, true);
}
int rwlock_wrlock(pthread_rwlock_t* lock) noexcept { return acquire_rwlock(lock, true, {}, true); }
int rwlock_trywrlock(pthread_rwlock_t* lock) noexcept { return acquire_rwlock(lock, true, {}, false); }
int rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* time) noexcept
{
    return acquire_rwlock(lock, true, {CLOCK_REALTIME, time}, true);
}
int rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) noexcept
{
    return acquire_rwlock(lock, true, {clock, time}, true);
}

int rwlock_unlock(pthread_rwlock_t* lock) noexcept
{
    Worker& worker = Worker::own();
    SyncState& state = worker.control().sync.state_of(lock);
    uncount(state, !is_writer(state, worker.number()));
    worker.held().remove(state);
    return 0;
}

int rwlock_destroy(pthread_rwlock_t* lock) noexcept
{
    Worker::own().control().sync.reset(lock);
    return 0;
}

// ---- Spin locks: a mutex without a kind ------------------------------------------------------------

int spin_lock(pthread_spinlock_t* lock) noexcept
{
    Worker& worker = Worker::own();
    SyncState& state = worker.control().sync.state_of(lock);
    return take(state, false, worker, {}, true);
}

int spin_trylock(pthread_spinlock_t* lock) noexcept
{
    Worker& worker = Worker::own();
    SyncState& state = worker.control().sync.state_of(lock);
    return take(state, false, worker, {}, false);
}

int spin_unlock(pthread_spinlock_t* lock) noexcept
{
    Worker& worker = Worker::own();
    SyncState& state = worker.control().sync.state_of(lock);
    give_word(state);
    worker.held().remove(state);
    return 0;
}

int spin_destroy(pthread_spinlock_t* lock) noexcept
{
    Worker::own().control().sync.reset(lock);
    return 0;
}

}  // namespace calls

}  // namespace stillpoint::nvthreads::processes
