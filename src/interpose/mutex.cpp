// POSIX mutexes of every kind. A robust mutex that is acquired from a dead owner (EOWNERDEAD) is held, so it
// counts; every other error means that nothing was acquired or released.

#include <cerrno>

#include "interpose/counted.hpp"
#include "interpose/process.hpp"
#include "interpose/real.hpp"
#include "os/thread_calls.hpp"
#include "runtime/plain_mutex.hpp"
#include "runtime/sync_uses.hpp"

using stillpoint::LockKind;
using stillpoint::interpose::acquire;
using stillpoint::interpose::acquire_without_record;
using stillpoint::interpose::release;
using stillpoint::interpose::release_without_record;
using stillpoint::real::Addresses;

namespace fase = stillpoint::fase;

namespace {

/// The id of a thread that has no record; 0: not asked for yet.
constinit thread_local int unrecorded_thread_id [[gnu::tls_model("initial-exec")]] = 0;

/// No pool is open, so a plain mutex is locked and unlocked in line and nothing else: that is less than a call of libc's function.
[[gnu::always_inline]] inline bool is_locked_in_line_without_pool(const pthread_mutex_t& mutex) noexcept
{
    return fase::gate.locks_plainly.load(std::memory_order_relaxed) && stillpoint::is_plain_mutex(mutex);
}

[[gnu::noinline]] int lock_without_record(pthread_mutex_t* mutex) noexcept
{
    if (unrecorded_thread_id == 0) [[unlikely]] {
        unrecorded_thread_id = stillpoint::os::thread_id();
    }
    if (is_locked_in_line_without_pool(*mutex) && stillpoint::try_lock_plain(*mutex, unrecorded_thread_id)) [[likely]] {
        return 0;
    }
    return acquire_without_record<LockKind::mutex, &Addresses::pthread_mutex_lock>(mutex);
}

[[gnu::noinline]] int unlock_without_record(pthread_mutex_t* mutex) noexcept
{
    if (is_locked_in_line_without_pool(*mutex) && stillpoint::try_unlock_plain(*mutex)) [[likely]] {
        return 0;
    }
    return release_without_record<&Addresses::pthread_mutex_unlock>(mutex);
}

[[gnu::noinline]] int trylock_through_libc(pthread_mutex_t* mutex) noexcept
{
    return acquire<LockKind::mutex, &Addresses::pthread_mutex_trylock>(mutex);
}

/// A plain mutex that another thread holds: nothing was changed.
[[gnu::noinline]] int leave_busy(stillpoint::ThreadRecord& record, pthread_mutex_t* mutex) noexcept
{
    fase::leave_counted(record, mutex);
    return EBUSY;
}

/// Any mutex, any result; the rare cases of the in-line code. Out of line, or that would need a stack frame.
[[gnu::noinline]] int lock_through_libc(pthread_mutex_t* mutex) noexcept
{
    return acquire<LockKind::mutex, &Addresses::pthread_mutex_lock>(mutex);
}

[[gnu::noinline]] int unlock_through_libc(pthread_mutex_t* mutex) noexcept { return release<&Addresses::pthread_mutex_unlock>(mutex); }

/// A plain mutex inside another lock. Nothing is published by it, so no thread waits for this one's answer.
[[gnu::noinline]] int lock_nested(pthread_mutex_t* mutex) noexcept
{
    stillpoint::ThreadRecord& record = *fase::own_record;
    // enter_nested() looks again, and acquires.
    const std::uint32_t bits = fase::gate.bits.load(std::memory_order_relaxed) & ~static_cast<std::uint32_t>(fase::section_ends_told);
    if (!fase::is_clear_for(bits, mutex)) [[unlikely]] {
        fase::enter_nested(record, mutex, LockKind::mutex);
        return stillpoint::interpose::call_resolved<&Addresses::pthread_mutex_lock>(mutex);
    }
    // No order is needed: the outermost publication has been made.
    record.depth.store(record.depth.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!stillpoint::try_lock_plain(*mutex, record.thread_id.load(std::memory_order_relaxed))) [[unlikely]] {
        return stillpoint::interpose::call_resolved<&Addresses::pthread_mutex_lock>(mutex);
    }
    return 0;
}

/// release_and_tell(), of a plain mutex.
int unlock_plain_and_tell(pthread_mutex_t* mutex, stillpoint::ThreadRecord& record) noexcept
{
    stillpoint::section_ends::tell_release(mutex);
    if (!stillpoint::try_unlock_plain(*mutex)) {
        if (const int result = stillpoint::interpose::call_resolved<&Addresses::pthread_mutex_unlock>(mutex); result != 0) {
            return result;
        }
    }
    stillpoint::note_lock_store(mutex, sizeof *mutex);
    fase::leave_told(record, mutex);
    stillpoint::section_ends::tell_ended();
    return 0;
}

[[gnu::noinline, gnu::cold]] int announce_departure() noexcept
{
    fase::announce_departure();
    return 0;
}

/// Another lock stays held or is ignored, or a thread waits, or the mutex is of another kind, or an engine is told of releases.
[[gnu::noinline]] int unlock_otherwise(pthread_mutex_t* mutex) noexcept
{
    stillpoint::ThreadRecord& record = *fase::own_record;
    const std::uint32_t bits = fase::gate.bits.load(std::memory_order_relaxed);
    const bool is_told = (bits & fase::section_ends_told) != 0;
    if (is_told && (bits & fase::libc_only) == 0 && stillpoint::is_plain_mutex(*mutex)) {
        return unlock_plain_and_tell(mutex, record);
    }
    const bool is_clear = fase::is_clear_for(bits, mutex);
    if (is_clear && record.depth.load(std::memory_order_relaxed) == 1 && stillpoint::is_plain_mutex(*mutex) &&
        stillpoint::try_unlock_plain(*mutex)) {  // Some other lock is ignored.
        stillpoint::note_lock_free(mutex, sizeof *mutex);
        return fase::leave_outermost(record, bits) ? announce_departure() : 0;
    }
    // leave_counted() looks at the rest of the gate.
    if (is_told || record.depth.load(std::memory_order_relaxed) < 2 || (bits & fase::libc_only) != 0 ||
        !stillpoint::is_plain_mutex(*mutex) || !stillpoint::try_unlock_plain(*mutex)) {
        return unlock_through_libc(mutex);
    }
    if (is_clear) {
        stillpoint::note_lock_free(mutex, sizeof *mutex);  // As release() does.
    } else {
        stillpoint::note_lock_store(mutex, sizeof *mutex);  // A lock that is not counted may be held in a stop.
    }
    fase::leave_counted(record, mutex);
    return 0;
}

/// Published, and the gate was not clear.
[[gnu::noinline]] int lock_after_slow_entry(pthread_mutex_t* mutex) noexcept
{
    stillpoint::ThreadRecord& record = *fase::own_record;
    fase::enter_after_look(record, mutex, LockKind::mutex);
    if ((fase::gate.bits.load(std::memory_order_relaxed) & fase::libc_only) == 0 &&
        stillpoint::try_lock_plain(*mutex, record.thread_id.load(std::memory_order_relaxed))) {
        return 0;
    }
    return stillpoint::interpose::call_resolved<&Addresses::pthread_mutex_lock>(mutex);
}

}  // namespace

namespace stillpoint::interpose {

void forget_thread_id() noexcept { unrecorded_thread_id = 0; }

void forget(const void* lock) noexcept
{
    fase_forget_lock(lock);
    sync_uses::forget(lock, 1);
}

}  // namespace stillpoint::interpose

SHIM int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept
{
    stillpoint::ThreadRecord* const record = fase::own_record;
    if (record == nullptr) [[unlikely]] {
        return lock_without_record(mutex);
    }
    if (!stillpoint::is_plain_mutex(*mutex)) [[unlikely]] {
        return lock_through_libc(mutex);
    }
    const auto entry = fase::try_enter(*record, mutex);
    if (entry != fase::Entry::inside) [[unlikely]] {
        return entry == fase::Entry::nested ? lock_nested(mutex) : lock_after_slow_entry(mutex);
    }
    if (!stillpoint::try_lock_plain(*mutex, record->thread_id.load(std::memory_order_relaxed))) [[unlikely]] {
        return stillpoint::interpose::call_resolved<&Addresses::pthread_mutex_lock>(mutex);
    }
    return 0;
}

SHIM int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept
{
    stillpoint::ThreadRecord* const record = fase::own_record;
    constexpr std::uint32_t no_part = fase::section_ends_told;  // Such an engine has no part in an acquire.
    if (record == nullptr || !stillpoint::is_plain_mutex(*mutex) || (fase::gate.bits.load(std::memory_order_relaxed) & ~no_part) != 0)
        [[unlikely]] {
        return trylock_through_libc(mutex);
    }
    fase::enter_counted(*record, mutex, LockKind::mutex);
    return stillpoint::try_lock_plain(*mutex, record->thread_id.load(std::memory_order_relaxed)) ? 0 : leave_busy(*record, mutex);
}

SHIM int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* deadline) noexcept
{
    return acquire<LockKind::mutex, &Addresses::pthread_mutex_timedlock>(mutex, deadline);
}

SHIM int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline) noexcept
{
    return acquire<LockKind::mutex, &Addresses::pthread_mutex_clocklock>(mutex, clock, deadline);
}

SHIM int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept
{
    stillpoint::ThreadRecord* const record = fase::own_record;
    if (record == nullptr) [[unlikely]] {
        return unlock_without_record(mutex);
    }
    if (!stillpoint::is_plain_mutex(*mutex) || !fase::is_plain_leave(*record) || !stillpoint::try_unlock_plain(*mutex)) [[unlikely]] {
        return unlock_otherwise(mutex);
    }
    stillpoint::note_lock_free(mutex, sizeof *mutex);  // As release() does.
    return fase::leave_outermost(*record) ? announce_departure() : 0;
}

SHIM int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept
{
    const int result = REAL(pthread_mutex_destroy)(mutex);
    if (result == 0) {
        stillpoint::interpose::forget(mutex);
    }
    return result;
}
