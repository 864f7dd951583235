#pragma once
// Acquire and release with accounting, as the shims of all lock kinds do them: one small function each after
// inlining. Two forms:
//   acquire, release: account, call, look at the result.
//   acquire_surely, release_surely: for calls that cannot fail. They account first and end in a jump to the
//     real function: a call and a return cost more than the accounting (stack writes must drain before the
//     locked instruction).
//
// A thread that has a record proves that the constructor has run (accounting begins after it), so
// the fast path needs no check that the real functions are known. Without a pool no thread has one: then a shim is two
// tests and a jump to the real function.

#include <cerrno>
#include <cstdint>
#include <type_traits>

#include "core/store_marks.hpp"
#include "core/units.hpp"
#include "interpose/real.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/kernel_lock_call.hpp"
#include "runtime/section_ends.hpp"
#include "runtime/sync_uses.hpp"

namespace stillpoint::interpose {

using Address = std::atomic<void*> real::Addresses::*;

template <Address address, class... Arguments>
[[gnu::always_inline]] inline int call_address(Arguments... arguments) noexcept
{
    using Function = int (*)(Arguments...) noexcept;
    return reinterpret_cast<Function>((real::addresses.*address).load(std::memory_order_relaxed))(arguments...);
}

/// The session's tracker protects pages, which the kernel may have to store to.
template <Address address, class Lock, class... Arguments>
[[gnu::noinline, gnu::cold]] int call_guarded(Lock* lock, Arguments... arguments) noexcept
{
    const KernelLockCall guard(lock);
    return call_address<address>(lock, arguments...);
}

template <Address address, class Lock, class... Arguments>
[[gnu::always_inline]] inline int call_resolved(Lock* lock, Arguments... arguments) noexcept
{
    if constexpr (std::is_same_v<Lock, pthread_mutex_t> || std::is_same_v<Lock, pthread_rwlock_t>) {
        if (kernel_locks::are_guarded.load(std::memory_order_relaxed)) [[unlikely]] {
            return call_guarded<address>(lock, arguments...);
        }
    }
    return call_address<address>(lock, arguments...);
}

/// The lock is held: 0, and for a robust mutex of a dead owner. C11 has no such result.
[[gnu::always_inline]] inline bool is_held(int result) noexcept { return result == 0 || result == EOWNERDEAD; }
static_assert(thrd_success == 0 && thrd_error != EOWNERDEAD && thrd_busy != EOWNERDEAD && thrd_timedout != EOWNERDEAD &&
              thrd_nomem != EOWNERDEAD);

/// Settles a result of an acquire that is not 0.
[[gnu::noinline, gnu::cold]] inline int settle_result(const void* lock, int result) noexcept
{
    if (!is_held(result)) {
        // A waiter that gave up has been counted in the lock, and uncounted.
        note_lock_store(lock, sizeof(pthread_rwlock_t));
        fase_leave(lock);
    }
    return result;
}

/// The thread's first lock since a pool was opened.
template <LockKind kind, Address address, class Lock, class... Arguments>
[[gnu::noinline, gnu::cold]] int acquire_attaching(Lock* lock, Arguments... arguments) noexcept
{
    const void* const name = const_cast<const void*>(static_cast<const volatile void*>(lock));
    static_cast<void>(real::ready(real::addresses.*address));
    fase::enter(name, kind);
    const int result = call_resolved<address>(lock, arguments...);
    return result == 0 ? 0 : settle_result(name, result);
}

/// The thread has no record: mostly because no pool is open, and then it needs none.
template <LockKind kind, Address address, class Lock, class... Arguments>
[[gnu::noinline]] int acquire_without_record(Lock* lock, Arguments... arguments) noexcept
{
    if (fase::gate.accounting.load(std::memory_order_relaxed) || (real::addresses.*address).load(std::memory_order_relaxed) == nullptr)
        [[unlikely]] {
        return acquire_attaching<kind, address>(lock, arguments...);
    }
    return call_resolved<address>(lock, arguments...);
}

template <LockKind kind, Address address, class Lock, class... Arguments>
[[gnu::always_inline]] inline int acquire(Lock* lock, Arguments... arguments) noexcept
{
    const void* const name = const_cast<const void*>(static_cast<const volatile void*>(lock));
    ThreadRecord* const record = fase::own_record;
    if (record == nullptr) [[unlikely]] {
        return acquire_without_record<kind, address>(lock, arguments...);
    }
    fase::enter_counted(*record, name, kind);
    const int result = call_resolved<address>(lock, arguments...);
    if (result != 0) [[unlikely]] {
        return settle_result(name, result);
    }
    return 0;
}

/// An engine is told of the release before other threads can get the lock, and after it.
template <Address address, class Lock>
[[gnu::noinline]] int release_and_tell(Lock* lock, ThreadRecord& record) noexcept
{
    const void* const name = const_cast<const void*>(static_cast<const volatile void*>(lock));
    section_ends::tell_release(name);
    const int result = call_resolved<address>(lock);
    if (result == 0) {
        note_lock_store(name, sizeof(Lock));
        fase::leave_told(record, name);
        section_ends::tell_ended();
    }
    return result;
}

/// A pool is open, and another thread may have acquired the lock.
template <Address address, class Lock>
[[gnu::noinline, gnu::cold]] int release_uncounted(Lock* lock) noexcept
{
    static_cast<void>(real::ready(real::addresses.*address));
    const int result = call_resolved<address>(lock);
    if (result == 0) {
        note_lock_store(const_cast<const void*>(static_cast<const volatile void*>(lock)), sizeof(Lock));  // As below.
    }
    return result;
}

/// The thread has no record: mostly because no pool is open. A lock in durable memory is then not held.
template <Address address, class Lock>
[[gnu::noinline]] int release_without_record(Lock* lock) noexcept
{
    if (fase::gate.accounting.load(std::memory_order_relaxed) || (real::addresses.*address).load(std::memory_order_relaxed) == nullptr)
        [[unlikely]] {
        return release_uncounted<address>(lock);
    }
    return call_resolved<address>(lock);
}

/// Whether a copy of the bytes that the lock had before it was acquired is one of a free lock. A free read-write lock of glibc has one of
/// two values, by how it was held last: either will do, but not the halves of both.
template <class Lock>
[[gnu::always_inline]] inline bool is_as_good_as_before(Lock* lock) noexcept
{
    const auto begin = reinterpret_cast<std::uintptr_t>(lock);
    return std::is_same_v<Lock, pthread_spinlock_t> ||
           (std::is_same_v<Lock, pthread_rwlock_t> && begin / cache_line_bytes == (begin + sizeof(Lock) - 1) / cache_line_bytes);
}

template <Address address, class Lock>
[[gnu::always_inline]] inline int release(Lock* lock) noexcept
{
    const void* const name = const_cast<const void*>(static_cast<const volatile void*>(lock));
    // Loaded before the release, whose locked instruction would delay the load.
    ThreadRecord* const record = fase::own_record;
    if (record == nullptr) [[unlikely]] {
        return release_without_record<address>(lock);
    }
    if (section_ends::are_told()) [[unlikely]] {
        return release_and_tell<address>(lock, *record);
    }
    const int result = call_resolved<address>(lock);
    if (result != 0) [[unlikely]] {
        return result;
    }
    // A copy made while the lock was held must not be the checkpoint's.
    if (is_as_good_as_before(lock) && fase::is_clear_for(fase::gate.bits.load(std::memory_order_relaxed), name)) {
        note_lock_free(name, sizeof(Lock));
    } else {
        note_lock_store(name, sizeof(Lock));
    }
    fase::leave_counted(*record, name);
    return 0;
}

/// acquire's work where the outermost, clear case was tried first.
template <LockKind kind, Address address, class Lock>
[[gnu::noinline]] int acquire_otherwise(Lock* lock, fase::Entry entry) noexcept
{
    const void* const name = const_cast<const void*>(static_cast<const volatile void*>(lock));
    if (entry == fase::Entry::nested) {
        fase::enter_nested(*fase::own_record, name, kind);
    } else {
        fase::enter_after_look(*fase::own_record, name, kind);
    }
    return call_resolved<address>(lock);
}

/// Acquires a lock whose acquire always succeeds.
template <LockKind kind, Address address, class Lock>
[[gnu::always_inline]] inline int acquire_surely(Lock* lock) noexcept
{
    const void* const name = const_cast<const void*>(static_cast<const volatile void*>(lock));
    ThreadRecord* const record = fase::own_record;
    if (record == nullptr) [[unlikely]] {
        return acquire_without_record<kind, address>(lock);
    }
    if (const auto entry = fase::try_enter(*record, name); entry != fase::Entry::inside) [[unlikely]] {
        return acquire_otherwise<kind, address>(lock, entry);
    }
    return call_resolved<address>(lock);
}

/// Out of line, so that a function that ends in a jump keeps no stack frame for this.
template <Address address, class Lock>
[[gnu::noinline]] int release_otherwise(Lock* lock) noexcept
{
    return release<address>(lock);
}

template <Address address, class Lock>
[[gnu::noinline, gnu::cold]] int announce_and_release(Lock* lock) noexcept
{
    fase::announce_departure();
    return call_resolved<address>(lock);
}

/// For a release that always succeeds, of a lock in volatile memory: the FASE ends an instant before the
/// release, when the program has made its last store of the FASE. No crash shows it: the lock itself is not
/// in the checkpoint, and this thread is not held on its way to the release. A lock in durable memory
/// must be free in every checkpoint, so it is released first.
template <Address address, class Lock>
[[gnu::always_inline]] inline int release_surely(Lock* lock) noexcept
{
    const void* const name = const_cast<const void*>(static_cast<const volatile void*>(lock));
    ThreadRecord* const record = fase::own_record;
    if (record == nullptr) [[unlikely]] {
        return release_without_record<address>(lock);
    }
    if (sync_uses::may_be_durable(name) || !fase::is_plain_leave(*record)) [[unlikely]] {
        return release_otherwise<address>(lock);
    }
    if (fase::leave_outermost(*record)) [[unlikely]] {
        return announce_and_release<address>(lock);
    }
    return call_resolved<address>(lock);
}

/// After a successful destroy: another lock may get the address.
void forget(const void* lock) noexcept;

}  // namespace stillpoint::interpose
