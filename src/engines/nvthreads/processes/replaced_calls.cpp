#include <array>

#include "engines/nvthreads/processes/sync_calls.hpp"
#include "engines/nvthreads/processes/threads.hpp"

namespace stillpoint::nvthreads::processes {

namespace {

template <class Function>
session_process::ReplacedCall replaced(const char* name, Function* function) noexcept
{
    return {name, reinterpret_cast<void*>(function)};
}

}  // namespace

// Inside functions: the library begins before objects of namespaces are made.

std::span<const session_process::ReplacedCall> replaced_lock_calls() noexcept
{
    using namespace calls;
    static const std::array list{
        replaced("pthread_mutex_init", &mutex_init),
        replaced("pthread_mutex_lock", &mutex_lock),
        replaced("pthread_mutex_trylock", &mutex_trylock),
        replaced("pthread_mutex_timedlock", &mutex_timedlock),
        replaced("pthread_mutex_clocklock", &mutex_clocklock),
        replaced("pthread_mutex_unlock", &mutex_unlock),
        replaced("pthread_mutex_destroy", &mutex_destroy),
        replaced("pthread_mutex_consistent", &mutex_consistent),
        replaced("pthread_rwlock_init", &rwlock_init),
        replaced("pthread_rwlock_rdlock", &rwlock_rdlock),
        replaced("pthread_rwlock_tryrdlock", &rwlock_tryrdlock),
        replaced("pthread_rwlock_timedrdlock", &rwlock_timedrdlock),
        replaced("pthread_rwlock_clockrdlock", &rwlock_clockrdlock),
        replaced("pthread_rwlock_wrlock", &rwlock_wrlock),
        replaced("pthread_rwlock_trywrlock", &rwlock_trywrlock),
        replaced("pthread_rwlock_timedwrlock", &rwlock_timedwrlock),
        replaced("pthread_rwlock_clockwrlock", &rwlock_clockwrlock),
        replaced("pthread_rwlock_unlock", &rwlock_unlock),
        replaced("pthread_rwlock_destroy", &rwlock_destroy),
        replaced("pthread_spin_lock", &spin_lock),
        replaced("pthread_spin_trylock", &spin_trylock),
        replaced("pthread_spin_unlock", &spin_unlock),
        replaced("pthread_spin_destroy", &spin_destroy),
        replaced("mtx_lock", &mtx_lock_c11),
        replaced("mtx_trylock", &mtx_trylock_c11),
        replaced("mtx_timedlock", &mtx_timedlock_c11),
        replaced("mtx_unlock", &mtx_unlock_c11),
        replaced("mtx_destroy", &mtx_destroy_c11),
    };
    return list;
}

std::span<const session_process::ReplacedCall> replaced_other_calls() noexcept
{
    using namespace calls;
    static const std::array list{
        replaced("pthread_cond_init", &cond_init),
        replaced("pthread_cond_wait", &cond_wait),
        replaced("pthread_cond_timedwait", &cond_timedwait),
        replaced("pthread_cond_clockwait", &cond_clockwait),
        replaced("pthread_cond_signal", &cond_wake),
        replaced("pthread_cond_broadcast", &cond_wake),
        replaced("pthread_cond_destroy", &cond_destroy),
        replaced("cnd_wait", &cnd_wait_c11),
        replaced("cnd_timedwait", &cnd_timedwait_c11),
        replaced("cnd_signal", &cnd_wake_c11),
        replaced("cnd_broadcast", &cnd_wake_c11),
        replaced("cnd_destroy", &cnd_destroy_c11),
        replaced("pthread_barrier_init", &barrier_init),
        replaced("pthread_barrier_wait", &barrier_wait),
        replaced("pthread_barrier_destroy", &barrier_destroy),
        replaced("sem_init", &semaphore_init),
        replaced("sem_wait", &semaphore_wait),
        replaced("sem_timedwait", &semaphore_timedwait),
        replaced("sem_clockwait", &semaphore_clockwait),
        replaced("sem_trywait", &semaphore_trywait),
        replaced("sem_post", &semaphore_post),
        replaced("sem_getvalue", &semaphore_value),
        replaced("sem_destroy", &semaphore_destroy),
        replaced("pthread_create", &thread_create),
        replaced("pthread_join", &thread_join),
        replaced("pthread_tryjoin_np", &thread_tryjoin),
        replaced("pthread_timedjoin_np", &thread_timedjoin),
        replaced("pthread_clockjoin_np", &thread_clockjoin),
        replaced("pthread_detach", &thread_detach),
        replaced("pthread_cancel", &thread_cancel),
        replaced("pthread_kill", &thread_kill),
        replaced("pthread_exit", &thread_exit),
        replaced("pthread_once", &once),
        replaced("pthread_key_create", &key_create),
        replaced("pthread_key_delete", &key_delete),
        replaced("pthread_setspecific", &key_set),
        replaced("tss_create", &key_create_c11),
        replaced("tss_delete", &key_delete_c11),
        replaced("tss_set", &key_set_c11),
        replaced("call_once", &once_c11),
        replaced("thrd_create", &thread_create_c11),
        replaced("thrd_join", &thread_join_c11),
        replaced("thrd_detach", &thread_detach_c11),
        replaced("fork", &fork_process),
        replaced("_Fork", &fork_process),
    };
    return list;
}

}  // namespace stillpoint::nvthreads::processes
