#pragma once
// Acquire and release with accounting, as the shims of all lock kinds do them: one small function each after
// inlining. A thread that has a record proves that the constructor has run (accounting begins after it), so
// the fast path needs no check that the real functions are known.

#include <cerrno>

#include "interpose/real.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"

namespace stillpoint::interpose {

using Address = std::atomic<void*> real::Addresses::*;

template <Address address, class... Arguments>
[[gnu::always_inline]] inline int call_resolved(Arguments... arguments) noexcept
{
    using Function = int (*)(Arguments...);
    return reinterpret_cast<Function>((real::addresses.*address).load(std::memory_order_relaxed))(
        arguments...);
}

/// The lock is held: 0, and for a robust mutex of a dead owner. C11 has no such result.
[[gnu::always_inline]] inline bool is_held(int result) noexcept
{
    return result == 0 || result == EOWNERDEAD;
}
static_assert(thrd_success == 0 && thrd_error != EOWNERDEAD && thrd_busy != EOWNERDEAD &&
              thrd_timedout != EOWNERDEAD && thrd_nomem != EOWNERDEAD);

/// Not 0 from an acquire.
[[gnu::noinline, gnu::cold]] inline int settle_result(const void* lock, int result) noexcept
{
    if (!is_held(result)) {
        fase_leave(lock);
    }
    return result;
}

/// The thread's first lock, or no pool is open.
template <LockKind kind, Address address, class Lock, class... Arguments>
[[gnu::noinline]] int acquire_first(Lock* lock, Arguments... arguments) noexcept
{
    const void* const name = const_cast<const void*>(static_cast<const volatile void*>(lock));
    static_cast<void>(real::ready(real::addresses.*address));
    fase::enter(name, kind);
    const int result = call_resolved<address>(lock, arguments...);
    return result == 0 ? 0 : settle_result(name, result);
}

template <LockKind kind, Address address, class Lock, class... Arguments>
[[gnu::always_inline]] inline int acquire(Lock* lock, Arguments... arguments) noexcept
{
    const void* const name = const_cast<const void*>(static_cast<const volatile void*>(lock));
    ThreadRecord* const record = fase::own_record;
    if (record == nullptr) [[unlikely]] {
        return acquire_first<kind, address>(lock, arguments...);
    }
    fase::enter_counted(*record, name, kind);
    const int result = call_resolved<address>(lock, arguments...);
    if (result != 0) [[unlikely]] {
        return settle_result(name, result);
    }
    return 0;
}

template <Address address, class Lock>
[[gnu::always_inline]] inline int release(Lock* lock) noexcept
{
    const void* const name = const_cast<const void*>(static_cast<const volatile void*>(lock));
    ThreadRecord* const record = fase::own_record;
    if (record == nullptr) [[unlikely]] {
        static_cast<void>(real::ready(real::addresses.*address));
        return call_resolved<address>(lock);
    }
    const int result = call_resolved<address>(lock);
    if (result == 0) [[likely]] {
        fase::leave_counted(*record, name);
    }
    return result;
}

/// After a successful destroy: another lock may get the address.
void forget(const void* lock) noexcept;

}  // namespace stillpoint::interpose
