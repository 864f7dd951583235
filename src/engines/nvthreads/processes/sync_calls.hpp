#pragma once
// The calls of pthread.h, threads.h and semaphore.h for threads that are processes. The interposer calls them in place of libc's; it has
// told of a release before, so that what the thread has stored is merged by then.

#include <cstdint>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>
#include <threads.h>

#include "engines/nvthreads/processes/sync_table.hpp"

namespace stillpoint::nvthreads::processes {

/// A point in time after which a call gives up.
class Deadline {
public:
    Deadline() = default;  ///< never
    Deadline(clockid_t clock, const timespec* time) noexcept : clock_(clock), time_(time) {}
    /// EINVAL where the time is not one, else 0.
    [[nodiscard]] int check() const noexcept;
    /// 0: it is past; UINT64_MAX: never.
    [[nodiscard]] std::uint64_t ns_left() const noexcept;
    [[nodiscard]] clockid_t clock() const noexcept { return clock_; }
    [[nodiscard]] const timespec* time() const noexcept { return time_; }

private:
    clockid_t clock_ = CLOCK_REALTIME;
    const timespec* time_ = nullptr;
};

/// Waits at most `ns_max` at a time, so that a thread that is cancelled hears of it.
inline constexpr std::uint64_t cancel_check_ns = 20'000'000;

// A mutex's state, also for condition waits. Results as of the calls.
[[nodiscard]] int acquire_mutex(pthread_mutex_t* mutex, const Deadline& deadline, bool waits) noexcept;
int release_mutex(pthread_mutex_t* mutex) noexcept;
/// A robust mutex passes to the next thread also when its holder ends in order.
[[nodiscard]] bool is_of_robust_mutex(const SyncState& state) noexcept;
/// The process of its holder has died.
void release_for_dead(SyncState& state, bool is_shared, std::uint32_t thread) noexcept;

/// libc's function of that name, past the interposer.
template <class Function>
[[nodiscard]] Function* libc(const char* name) noexcept
{
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Each is called in place of the function of libc that replaced_calls.cpp says.
namespace calls {

int mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) noexcept;
int mutex_lock(pthread_mutex_t* mutex) noexcept;
int mutex_trylock(pthread_mutex_t* mutex) noexcept;
int mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) noexcept;
int mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* time) noexcept;
int mutex_unlock(pthread_mutex_t* mutex) noexcept;
int mutex_destroy(pthread_mutex_t* mutex) noexcept;
int mutex_consistent(pthread_mutex_t* mutex) noexcept;

int rwlock_init(pthread_rwlock_t* lock, const pthread_rwlockattr_t* attributes) noexcept;
int rwlock_rdlock(pthread_rwlock_t* lock) noexcept;
int rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept;
int rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* time) noexcept;
int rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) noexcept;
int rwlock_wrlock(pthread_rwlock_t* lock) noexcept;
int rwlock_trywrlock(pthread_rwlock_t* lock) noexcept;
int rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* time) noexcept;
int rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) noexcept;
int rwlock_unlock(pthread_rwlock_t* lock) noexcept;
int rwlock_destroy(pthread_rwlock_t* lock) noexcept;

int spin_lock(pthread_spinlock_t* lock) noexcept;
int spin_trylock(pthread_spinlock_t* lock) noexcept;
int spin_unlock(pthread_spinlock_t* lock) noexcept;
int spin_destroy(pthread_spinlock_t* lock) noexcept;

int mtx_lock_c11(mtx_t* mutex) noexcept;
int mtx_trylock_c11(mtx_t* mutex) noexcept;
int mtx_timedlock_c11(mtx_t* mutex, const timespec* time) noexcept;
int mtx_unlock_c11(mtx_t* mutex) noexcept;
void mtx_destroy_c11(mtx_t* mutex) noexcept;

int cond_init(pthread_cond_t* condition, const pthread_condattr_t* attributes) noexcept;
int cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex);
int cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* time);
int cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* time);
int cond_wake(pthread_cond_t* condition) noexcept;
int cond_destroy(pthread_cond_t* condition) noexcept;
int cnd_wait_c11(cnd_t* condition, mtx_t* mutex);
int cnd_timedwait_c11(cnd_t* condition, mtx_t* mutex, const timespec* time);
int cnd_wake_c11(cnd_t* condition) noexcept;
void cnd_destroy_c11(cnd_t* condition) noexcept;

int barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes, unsigned count) noexcept;
int barrier_wait(pthread_barrier_t* barrier) noexcept;
int barrier_destroy(pthread_barrier_t* barrier) noexcept;

int semaphore_init(sem_t* semaphore, int shared, unsigned value) noexcept;
int semaphore_wait(sem_t* semaphore);
int semaphore_timedwait(sem_t* semaphore, const timespec* time);
int semaphore_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time);
int semaphore_trywait(sem_t* semaphore) noexcept;
int semaphore_post(sem_t* semaphore) noexcept;
int semaphore_value(sem_t* semaphore, int* value) noexcept;
int semaphore_destroy(sem_t* semaphore) noexcept;

int thread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) noexcept;
int thread_join(pthread_t thread, void** value);
int thread_tryjoin(pthread_t thread, void** value);
int thread_timedjoin(pthread_t thread, void** value, const timespec* time);
int thread_clockjoin(pthread_t thread, void** value, clockid_t clock, const timespec* time);
int thread_detach(pthread_t thread) noexcept;
int thread_cancel(pthread_t thread) noexcept;
int thread_kill(pthread_t thread, int number) noexcept;
void thread_exit(void* value);
int thread_create_c11(thrd_t* thread, int (*start)(void*), void* argument) noexcept;
int thread_join_c11(thrd_t thread, int* value);
int thread_detach_c11(thrd_t thread) noexcept;
int once(pthread_once_t* control, void (*routine)());
void once_c11(once_flag* flag, void (*routine)());
int key_create(pthread_key_t* key, void (*destructor)(void*)) noexcept;
int key_delete(pthread_key_t key) noexcept;
int key_set(pthread_key_t key, const void* value) noexcept;
int key_create_c11(tss_t* key, tss_dtor_t destructor) noexcept;
void key_delete_c11(tss_t key) noexcept;
int key_set_c11(tss_t key, void* value) noexcept;
pid_t fork_process() noexcept;

}  // namespace calls

}  // namespace stillpoint::nvthreads::processes
