#pragma once
// Stands in for src/interpose/real.hpp: the shims get other names, so that they replace nothing of libc in the
// explorer, and the functions behind them are those of libc_model.cpp.

#include <atomic>
#include <cerrno>
#include <ctime>
#include <pthread.h>
#include <threads.h>

#define SHIM extern "C"

extern "C" {
int explored_mutex_lock(pthread_mutex_t*) noexcept;
int explored_mutex_trylock(pthread_mutex_t*) noexcept;
int explored_mutex_timedlock(pthread_mutex_t*, const timespec*) noexcept;
int explored_mutex_clocklock(pthread_mutex_t*, clockid_t, const timespec*) noexcept;
int explored_mutex_unlock(pthread_mutex_t*) noexcept;
int explored_mutex_destroy(pthread_mutex_t*) noexcept;
int explored_spin_lock(pthread_spinlock_t*) noexcept;
int explored_spin_trylock(pthread_spinlock_t*) noexcept;
int explored_spin_unlock(pthread_spinlock_t*) noexcept;
int explored_spin_destroy(pthread_spinlock_t*) noexcept;
int explored_cond_wait(pthread_cond_t*, pthread_mutex_t*);
int explored_cond_timedwait(pthread_cond_t*, pthread_mutex_t*, const timespec*);
int explored_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
int explored_cond_destroy(pthread_cond_t*) noexcept;
int explored_cnd_wait(cnd_t*, mtx_t*);
int explored_cnd_timedwait(cnd_t*, mtx_t*, const timespec*);
void explored_cnd_destroy(cnd_t*);
}

#define pthread_mutex_lock explored_mutex_lock
#define pthread_mutex_trylock explored_mutex_trylock
#define pthread_mutex_timedlock explored_mutex_timedlock
#define pthread_mutex_clocklock explored_mutex_clocklock
#define pthread_mutex_unlock explored_mutex_unlock
#define pthread_mutex_destroy explored_mutex_destroy
#define pthread_spin_lock explored_spin_lock
#define pthread_spin_trylock explored_spin_trylock
#define pthread_spin_unlock explored_spin_unlock
#define pthread_spin_destroy explored_spin_destroy
#define pthread_cond_wait explored_cond_wait
#define pthread_cond_timedwait explored_cond_timedwait
#define pthread_cond_clockwait explored_cond_clockwait
#define pthread_cond_destroy explored_cond_destroy
#define cnd_wait explored_cnd_wait
#define cnd_timedwait explored_cnd_timedwait
#define cnd_destroy explored_cnd_destroy

namespace stillpoint::real {

struct Addresses {
#define INTERCEPTED(name, version) std::atomic<void*> name;
#include "interpose/intercepted.inc"
#undef INTERCEPTED
};
extern constinit Addresses addresses;

inline void* ready(const std::atomic<void*>& address) noexcept { return address.load(std::memory_order_relaxed); }

#define REAL(name) (reinterpret_cast<decltype(&::name)>(::stillpoint::real::ready(::stillpoint::real::addresses.name)))

}  // namespace stillpoint::real
