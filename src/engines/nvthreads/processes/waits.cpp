// Condition variables, barriers, semaphores. Each is a word that counts, and threads that sleep until it changes.

#include <cerrno>
#include <climits>

#include "engines/nvthreads/processes/sync_calls.hpp"
#include "engines/nvthreads/processes/worker.hpp"

namespace stillpoint::nvthreads::processes {

int Deadline::check() const noexcept
{
    constexpr long ns_per_s = 1'000'000'000;
    return time_ != nullptr && (time_->tv_nsec < 0 || time_->tv_nsec >= ns_per_s) ? EINVAL : 0;
}

std::uint64_t Deadline::ns_left() const noexcept
{
    if (time_ == nullptr) {
        return UINT64_MAX;
    }
    timespec now{};
    clock_gettime(clock_, &now);
    const std::int64_t left = (static_cast<std::int64_t>(time_->tv_sec) - now.tv_sec) * 1'000'000'000 + (time_->tv_nsec - now.tv_nsec);
    return left <= 0 ? 0 : static_cast<std::uint64_t>(left);
}

namespace {

SyncState& state_of(const volatile void* object) noexcept { return Worker::own().control().sync.state_of(object); }

/// While it lives the thread is counted as one that waits, also where it is cancelled.
class Waiting {
public:
    explicit Waiting(SyncState& state) noexcept : state_(state) { state_.waiters.fetch_add(1, std::memory_order_seq_cst); }
    ~Waiting() { state_.waiters.fetch_sub(1, std::memory_order_seq_cst); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

private:
    SyncState& state_;
};

void wake_waiters(SyncState& state) noexcept
{
    if (state.waiters.load(std::memory_order_seq_cst) != 0) {
        shared_wake(state.word);
    }
}

/// The mutex is held again when this is left, by cancellation too.
class Reacquired {
public:
    explicit Reacquired(pthread_mutex_t* mutex) noexcept : mutex_(mutex) {}
    ~Reacquired()
    {
        if (!is_done_) {
            static_cast<void>(acquire_mutex(mutex_, {}, true));
        }
    }
    Reacquired(const Reacquired&) = delete;
    Reacquired& operator=(const Reacquired&) = delete;
    int acquire() noexcept
    {
        is_done_ = true;
        return acquire_mutex(mutex_, {}, true);
    }

private:
    pthread_mutex_t* mutex_;
    bool is_done_ = false;
};

std::uint64_t at_most(std::uint64_t ns, std::uint64_t ns_max) noexcept { return ns < ns_max ? ns : ns_max; }

int wait_on_condition(const void* condition, pthread_mutex_t* mutex, const Deadline& deadline)
{
    if (const int invalid = deadline.check(); invalid != 0) {
        return invalid;
    }
    SyncState& state = state_of(condition);
    const std::uint32_t seen = state.word.load(std::memory_order_seq_cst);
    bool is_late = false;
    int result = 0;
    {
        const Waiting waiting(state);
        if (const int refused = release_mutex(mutex); refused != 0) {
            return refused;
        }
        Reacquired reacquired(mutex);
        while (state.word.load(std::memory_order_acquire) == seen) {
            const std::uint64_t left = deadline.ns_left();
            if (left == 0) {
                is_late = true;
                break;
            }
            shared_wait(state.word, seen, at_most(left, cancel_check_ns));
            pthread_testcancel();
        }
        result = reacquired.acquire();
    }
    return result == 0 && is_late ? ETIMEDOUT : result;
}

/// The clock that the condition variable was made with.
clockid_t clock_of(const pthread_cond_t& condition) noexcept
{
    constexpr unsigned monotonic_bit = 2;
    return (condition.__data.__wrefs & monotonic_bit) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/// A wake-up is for all: a thread that begins to wait between the count and the wake-up of one would take it from one that waits.
void wake_condition(const void* condition) noexcept
{
    SyncState& state = state_of(condition);
    state.word.fetch_add(1, std::memory_order_seq_cst);
    wake_waiters(state);
}

/// sem_init marks the state; a semaphore of sem_open is libc's, and works between processes as it is.
constexpr std::uint32_t is_own = 1;

bool is_named(const SyncState& state) noexcept { return state.marks.load(std::memory_order_relaxed) != is_own; }

bool take_one(SyncState& state) noexcept
{
    std::uint32_t seen = state.word.load(std::memory_order_relaxed);
    while (seen != 0) {
        if (state.word.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

int wait_through_libc(sem_t* semaphore, const Deadline& deadline)
{
    static auto* const wait = libc<int(sem_t*)>("sem_wait");
    static auto* const clockwait = libc<int(sem_t*, clockid_t, const timespec*)>("sem_clockwait");
    const int result = deadline.time() == nullptr ? wait(semaphore) : clockwait(semaphore, deadline.clock(), deadline.time());
    Worker::own().note_acquire();
    return result;
}

int wait_on_semaphore(sem_t* semaphore, const Deadline& deadline)
{
    if (deadline.check() != 0) {
        errno = EINVAL;
        return -1;
    }
    SyncState& state = state_of(semaphore);
    if (is_named(state)) {
        return wait_through_libc(semaphore, deadline);
    }
    while (!take_one(state)) {
        const std::uint64_t left = deadline.ns_left();
        if (left == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        const Waiting waiting(state);
        shared_wait(state.word, 0, at_most(left, cancel_check_ns));
        pthread_testcancel();
    }
    Worker::own().note_acquire();
    return 0;
}

}  // namespace

namespace calls {

int cond_init(pthread_cond_t* condition, const pthread_condattr_t* attributes) noexcept
{
    static auto* const init = libc<int(pthread_cond_t*, const pthread_condattr_t*)>("pthread_cond_init");
    Worker::own().control().sync.reset(condition);
    return init(condition, attributes);
}
int cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) { return wait_on_condition(condition, mutex, {}); }
int cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* time)
{
    return wait_on_condition(condition, mutex, {clock_of(*condition), time});
}
int cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* time)
{
    return wait_on_condition(condition, mutex, {clock, time});
}
int cond_wake(pthread_cond_t* condition) noexcept
{
    wake_condition(condition);
    return 0;
}
int cond_destroy(pthread_cond_t* condition) noexcept
{
    static_cast<void>(Worker::own().control().sync.reset(condition));
    return 0;
}

int cnd_wait_c11(cnd_t* condition, mtx_t* mutex)
{
    return wait_on_condition(condition, reinterpret_cast<pthread_mutex_t*>(mutex), {}) == 0 ? thrd_success : thrd_error;
}
int cnd_timedwait_c11(cnd_t* condition, mtx_t* mutex, const timespec* time)
{
    switch (wait_on_condition(condition, reinterpret_cast<pthread_mutex_t*>(mutex), {CLOCK_REALTIME, time})) {
    case 0: return thrd_success;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
    }
}
int cnd_wake_c11(cnd_t* condition) noexcept
{
    wake_condition(condition);
    return thrd_success;
}
void cnd_destroy_c11(cnd_t* condition) noexcept { static_cast<void>(Worker::own().control().sync.reset(condition)); }

int barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* /*attributes*/, unsigned count) noexcept
{
    if (count == 0 || count > INT_MAX) {
        return EINVAL;
    }
    Worker::own().control().sync.reset(barrier).count.store(count, std::memory_order_release);
    return 0;
}

int barrier_wait(pthread_barrier_t* barrier) noexcept
{
    SyncState& state = state_of(barrier);
    const std::uint32_t seen = state.word.load(std::memory_order_acquire);
    const std::uint32_t count = state.count.load(std::memory_order_relaxed);
    const bool is_last = state.phase.fetch_add(1, std::memory_order_acq_rel) + 1 == count;
    if (is_last) {
        state.phase.store(0, std::memory_order_relaxed);
        state.word.fetch_add(1, std::memory_order_release);
        shared_wake(state.word);
    } else {
        while (state.word.load(std::memory_order_acquire) == seen) {
            shared_wait(state.word, seen);
        }
    }
    Worker::own().note_acquire();
    return is_last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

int barrier_destroy(pthread_barrier_t* barrier) noexcept
{
    static_cast<void>(Worker::own().control().sync.reset(barrier));
    return 0;
}

int semaphore_init(sem_t* semaphore, int /*shared*/, unsigned value) noexcept
{
    if (value > SEM_VALUE_MAX) {
        errno = EINVAL;
        return -1;
    }
    SyncState& state = Worker::own().control().sync.reset(semaphore);
    state.marks.store(is_own, std::memory_order_relaxed);
    state.word.store(value, std::memory_order_release);
    return 0;
}

int semaphore_wait(sem_t* semaphore) { return wait_on_semaphore(semaphore, {}); }
int semaphore_timedwait(sem_t* semaphore, const timespec* time) { return wait_on_semaphore(semaphore, {CLOCK_REALTIME, time}); }
int semaphore_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) { return wait_on_semaphore(semaphore, {clock, time}); }

int semaphore_trywait(sem_t* semaphore) noexcept
{
    if (is_named(state_of(semaphore))) {
        static auto* const trywait = libc<int(sem_t*)>("sem_trywait");
        return trywait(semaphore);
    }
    if (!take_one(state_of(semaphore))) {
        errno = EAGAIN;
        return -1;
    }
    Worker::own().note_acquire();
    return 0;
}

int semaphore_post(sem_t* semaphore) noexcept
{
    SyncState& state = state_of(semaphore);
    if (is_named(state)) {
        static auto* const post = libc<int(sem_t*)>("sem_post");
        return post(semaphore);
    }
    state.word.fetch_add(1, std::memory_order_seq_cst);
    wake_waiters(state);
    return 0;
}

int semaphore_value(sem_t* semaphore, int* value) noexcept
{
    if (is_named(state_of(semaphore))) {
        static auto* const get = libc<int(sem_t*, int*)>("sem_getvalue");
        return get(semaphore, value);
    }
    *value = static_cast<int>(state_of(semaphore).word.load(std::memory_order_acquire));
    return 0;
}

int semaphore_destroy(sem_t* semaphore) noexcept
{
    static_cast<void>(Worker::own().control().sync.reset(semaphore));
    return 0;
}

}  // namespace calls

}  // namespace stillpoint::nvthreads::processes
