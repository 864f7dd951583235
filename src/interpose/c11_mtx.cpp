// C11 mutexes. glibc builds them on its own mutexes without going through the symbols of mutex.cpp.

#include "interpose/counted.hpp"
#include "interpose/real.hpp"

using stillpoint::LockKind;
using stillpoint::interpose::acquire;
using stillpoint::interpose::release;
using stillpoint::real::Addresses;

SHIM int mtx_lock(mtx_t* mutex) { return acquire<LockKind::mutex, &Addresses::mtx_lock>(mutex); }

SHIM int mtx_trylock(mtx_t* mutex) { return acquire<LockKind::mutex, &Addresses::mtx_trylock>(mutex); }

SHIM int mtx_timedlock(mtx_t* mutex, const timespec* deadline)
{
    return acquire<LockKind::mutex, &Addresses::mtx_timedlock>(mutex, deadline);
}

SHIM int mtx_unlock(mtx_t* mutex) { return release<&Addresses::mtx_unlock>(mutex); }

SHIM void mtx_destroy(mtx_t* mutex)
{
    REAL(mtx_destroy)(mutex);
    stillpoint::interpose::forget(mutex);
}
