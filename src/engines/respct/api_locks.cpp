// The API of the one-word locks (stillpoint/respct.h), where they have more to do than a compare-and-swap (respct_locks.hpp).

#include <atomic>
#include <climits>
#include <cstdlib>

#include "arch/spin.hpp"
#include "engines/respct/checks.hpp"
#include "engines/respct/locks.hpp"
#include "engines/respct/thread.hpp"
#include "os/futex_calls.hpp"
#include "os/log.hpp"
#include "runtime/api_export.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/held_locks.hpp"

namespace stillpoint::respct {

namespace {

using LockWord = sync::Atomic<std::uint32_t>;

/// Bits of a mutex.
enum : std::uint32_t {
    held = 1,
    waited_for = 2,
    is_section = 4,  ///< its holder takes no part in restart points: a FASE of its own
    is_listed = 8,   ///< among the holder's for the checks
};

LockWord& word_of(std::uint32_t& word) noexcept { return *reinterpret_cast<LockWord*>(&word); }

bool is_counted() noexcept
{
    const Thread* const thread = own_thread;
    return thread != nullptr && (thread->is_inside || thread->is_allowed);
}

/// Announces the lock to the accounting before the mutex is taken. Returns the bits that record it.
std::uint32_t announce(const sp_respct_mutex* mutex) noexcept
{
    if (!is_active()) {
        return held;
    }
    if (!is_counted()) {
        fase_enter(mutex);  // Held while the gate is shut.
        return held | is_section;
    }
    const ThreadRecord* const record = fase::own_record;
    if (held_locks::are_listed() && record != nullptr) {
        held_locks::add(*record, mutex, record->depth.load(std::memory_order_relaxed));
        return held | is_listed;
    }
    return held;
}

void withdraw(const sp_respct_mutex* mutex, std::uint32_t bits) noexcept
{
    if ((bits & is_section) != 0) {
        fase_leave(mutex);
    } else if ((bits & is_listed) != 0) {
        held_locks::remove(mutex);
    }
}

void count(std::uint32_t bits) noexcept { sp_respct_locks += (bits & is_section) != 0 ? 0 : 1; }

/// Looks again after 1, 2, 4 and so on pauses: a section under a lock of one word is short, and a thread that looks seldom leaves the
/// lock's line, and what the lock guards, in the cache of the holder. True: taken.
bool take_soon(LockWord& word, std::uint32_t bits) noexcept
{
    constexpr unsigned pauses_max = 64;  ///< A hypervisor takes more in a row for a CPU without work.
    for (unsigned pauses = 1; pauses <= pauses_max; pauses *= 2) {
        for (unsigned i = 0; i < pauses; ++i) {
            arch::spin_pause();
        }
        std::uint32_t seen = word.load(std::memory_order_relaxed);
        if (seen == 0 && word.compare_exchange_strong(seen, bits, std::memory_order_acquire, std::memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/// A thread that has slept takes it as waited for: others may still sleep.
void take_contended(LockWord& word, std::uint32_t bits) noexcept
{
    if (take_soon(word, bits)) {
        return;
    }
    std::uint32_t seen = 0;
    while (!word.compare_exchange_weak(seen, bits, std::memory_order_acquire, std::memory_order_relaxed)) {
        if (seen == 0) {
            continue;
        }
        if ((seen & waited_for) != 0 || word.compare_exchange_weak(seen, seen | waited_for, std::memory_order_relaxed)) {
            os::futex_wait(word, seen | waited_for);
            bits |= waited_for;
        }
        seen = 0;
    }
}

void lock_again(void* mutex) noexcept { sp_respct_lock(static_cast<sp_respct_mutex*>(mutex)); }
void unlock_meanwhile(void* mutex) noexcept { sp_respct_unlock(static_cast<sp_respct_mutex*>(mutex)); }

}  // namespace

}  // namespace stillpoint::respct

namespace respct = stillpoint::respct;

STILLPOINT_API void sp_respct_lock_slowly(sp_respct_mutex* mutex)
{
    const std::uint32_t bits = respct::announce(mutex);
    respct::take_contended(respct::word_of(mutex->state), bits);
    respct::count(bits);
}

STILLPOINT_API bool sp_respct_try_lock_slowly(sp_respct_mutex* mutex)
{
    const std::uint32_t bits = respct::announce(mutex);
    std::uint32_t seen = 0;
    if (!respct::word_of(mutex->state).compare_exchange_strong(seen, bits, std::memory_order_acquire, std::memory_order_relaxed)) {
        respct::withdraw(mutex, bits);
        return false;
    }
    respct::count(bits);
    return true;
}

STILLPOINT_API void sp_respct_unlock_slowly(sp_respct_mutex* mutex, uint32_t was)
{
    if (was == 0) {
        stillpoint::os::log(stillpoint::os::Severity::error, "sp_respct_unlock({}): no thread holds this mutex; the program ends here",
                            static_cast<const void*>(mutex));
        std::abort();
    }
    if ((was & respct::waited_for) != 0) {
        stillpoint::os::futex_wake(respct::word_of(mutex->state), 1);
    }
    sp_respct_locks -= (was & respct::is_section) != 0 ? 0 : 1;
    respct::withdraw(mutex, was);
}

STILLPOINT_API void sp_respct_wait(sp_respct_condition* condition, sp_respct_mutex* mutex)
{
    auto& changes = respct::word_of(condition->changes);
    const std::uint32_t seen = changes.fetch_or(1, std::memory_order_relaxed) | 1;
    sp_respct_checkpoint_allow();
    sp_respct_unlock(mutex);
    stillpoint::os::futex_wait(changes, seen);
    sp_respct_lock(mutex);
    if (respct::is_active()) {
        respct::prevent(mutex, &respct::unlock_meanwhile, &respct::lock_again);
    }
    respct::checks::note_prevent();
}

STILLPOINT_API void sp_respct_notify_one(sp_respct_condition* condition)
{
    auto& changes = respct::word_of(condition->changes);
    if ((changes.load(std::memory_order_relaxed) & 1) == 0) {
        return;
    }
    std::uint32_t now = changes.fetch_add(2, std::memory_order_relaxed) + 2;
    if (stillpoint::os::futex_wake(changes, 1) == 0) {
        // Unless another thread has come meanwhile: then it does not sleep, or the count has changed.
        changes.compare_exchange_strong(now, now & ~std::uint32_t{1}, std::memory_order_relaxed);
    }
}

STILLPOINT_API void sp_respct_notify_all(sp_respct_condition* condition)
{
    auto& changes = respct::word_of(condition->changes);
    std::uint32_t seen = changes.load(std::memory_order_relaxed);
    while ((seen & 1) != 0) {
        if (changes.compare_exchange_weak(seen, (seen + 2) & ~std::uint32_t{1}, std::memory_order_relaxed)) {
            stillpoint::os::futex_wake(changes, INT_MAX);
            return;
        }
    }
}
