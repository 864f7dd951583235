#include "runtime/sync_uses.hpp"

#include <algorithm>
#include <linux/futex.h>
#include <mutex>
#include <pthread.h>

#include "core/canary.hpp"
#include "core/store_marks.hpp"
#include "core/sync.hpp"
#include "os/futex.hpp"
#include "os/futex_calls.hpp"
#include "os/log.hpp"
#include "os/thread_calls.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/kernel_lock_call.hpp"
#include "runtime/sync_object_reset.hpp"
#include "runtime/thread_registry.hpp"

namespace stillpoint::sync_uses {

constinit std::atomic<bool> attached{false};
constinit std::atomic<std::uint32_t> mirror_count{0};
constinit std::atomic<bool> any{false};
constinit Regions regions{};

bool Regions::may_hold_one_in(std::uintptr_t address, std::size_t size) const noexcept
{
    const std::uintptr_t first = address >> region_shift;
    const std::uintptr_t last = (address + (size == 0 ? 0 : size - 1)) >> region_shift;
    if (last - first >= region_count) {
        return true;
    }
    for (std::uintptr_t region = first; region <= last; ++region) {
        for (const auto& shard : members_) {
            if (shard[region % region_count].load(std::memory_order_relaxed) != 0) {
                return true;
            }
        }
    }
    return false;
}

namespace {

/// One word: the object's address, and in the byte that addresses of programs leave zero its kind.
using Use = std::uintptr_t;
constexpr unsigned kind_shift = 56;
constexpr Use call_bit = Use{1} << 63;  ///< inside a call of libc; otherwise a lock that is held

Use use_of(const void* object, SyncObjectKind kind) noexcept
{
    return reinterpret_cast<std::uintptr_t>(object) | static_cast<std::uintptr_t>(kind) << kind_shift;
}
std::uintptr_t address_of(Use use) noexcept { return use & ((Use{1} << kind_shift) - 1); }
SyncObjectKind kind_of(Use use) noexcept { return static_cast<SyncObjectKind>((use & ~call_bit) >> kind_shift); }
const void* object_of(Use use) noexcept { return reinterpret_cast<const void*>(address_of(use)); }

/// A use for which the record of its thread has no room, or a lock of a thread that has ended.
struct OverflowUse {
    std::atomic<Use> use;
    std::atomic<int> thread_id;  ///< of the thread that has ended; 0: it runs
    kernel_writes::Slot slot;     ///< of a mutex that the kernel is about to mark
};
constinit std::array<OverflowUse, 1024> overflow_uses{};
constinit std::atomic<std::uint32_t> beside_end{0};  ///< no entry from here on has ever been used
constinit os::FutexLock beside_lock{};
constinit bool full_reported = false;

constinit sync::Atomic<std::uint32_t> capturing{0};

/// After a change of a list (the head of sync_uses.hpp).
void wait_for_capture() noexcept
{
    sync::fence(std::memory_order_seq_cst);
    while (capturing.load(std::memory_order_acquire) != 0) {
        os::futex_wait(capturing, 1);
    }
}

/// The shard that counts the uses in a thread's record. Uses beside the records are counted in the first.
std::size_t shard_of(const ThreadRecord& record) noexcept
{
    return reinterpret_cast<std::uintptr_t>(&record) / sizeof record % Regions::shards;
}

template <class Slot>
bool take_out(Slot& slot, Use use, std::size_t shard) noexcept
{
    Use expected = use;
    if (slot.load(std::memory_order_relaxed) != use || !slot.compare_exchange_strong(expected, 0, std::memory_order_release)) {
        return false;
    }
    regions.remove(address_of(use), shard);
    return true;
}

bool put_beside(Use use, int thread_id) noexcept
{
    const os::SignalsBlocked blocked;  // A handler may come here too.
    const std::scoped_lock hold{beside_lock};
    for (std::uint32_t i = 0; i < overflow_uses.size(); ++i) {
        if (overflow_uses[i].use.load(std::memory_order_relaxed) == 0) {
            regions.add(address_of(use));
            overflow_uses[i].thread_id.store(thread_id, std::memory_order_relaxed);
            overflow_uses[i].slot = kind_of(use) == SyncObjectKind::orphaned_mutex ? kernel_locks::begin_after_thread(object_of(use))
                                                                                   : kernel_writes::no_slot;
            overflow_uses[i].use.store(use, std::memory_order_release);
            if (beside_end.load(std::memory_order_relaxed) <= i) {
                beside_end.store(i + 1, std::memory_order_relaxed);
            }
            return true;
        }
    }
    if (!full_reported) {
        full_reported = true;
        os::log(os::Severity::warning,
                "too many locks in durable memory are held without a failure-atomic section: the one at {} and others may still be "
                "held after a crash",
                object_of(use));
    }
    return false;
}

bool take_out_overflow_use(OverflowUse& entry, Use use) noexcept
{
    const os::SignalsBlocked blocked;
    const std::scoped_lock hold{beside_lock};
    const kernel_writes::Slot slot = entry.slot;
    if (!take_out(entry.use, use, 0)) {
        return false;
    }
    kernel_locks::release(slot);
    return true;
}

template <class Visit>
bool any_overflow_use(Visit&& visit) noexcept
{
    const std::uint32_t end = beside_end.load(std::memory_order_relaxed);  // The fences of a capture order it.
    for (std::uint32_t i = 0; i < end; ++i) {
        if (const Use use = overflow_uses[i].use.load(std::memory_order_acquire); use != 0 && visit(overflow_uses[i], use)) {
            return true;
        }
    }
    return false;
}

/// Whether a thread that has ended still holds the object. False: released, passed on, or other data by now; nothing of the dead
/// thread is in its bytes.
bool is_still_left_behind(Use use, int thread_id) noexcept
{
    const void* const object = object_of(use);
    switch (kind_of(use)) {
    case SyncObjectKind::mutex: {
        const auto& state = static_cast<const pthread_mutex_t*>(object)->__data;
        return state.__lock != 0 && state.__owner == thread_id;
    }
    case SyncObjectKind::orphaned_mutex: {
        const auto& state = static_cast<const pthread_mutex_t*>(object)->__data;
        return (static_cast<unsigned>(state.__lock) & FUTEX_TID_MASK) == static_cast<unsigned>(thread_id);
    }
    case SyncObjectKind::rwlock: {
        const auto& state = static_cast<const pthread_rwlock_t*>(object)->__data;
        return state.__cur_writer == thread_id || state.__readers != 0;
    }
    default: return true;
    }
}

bool is_robust(const void* mutex) noexcept
{
    constexpr int robust_bit = 16;  // PTHREAD_MUTEX_ROBUST_NORMAL_NP of glibc's pthreadP.h
    return (static_cast<const pthread_mutex_t*>(mutex)->__data.__kind & robust_bit) != 0;
}

bool take_from(const ThreadRecord& record, Use use) noexcept
{
    const std::size_t shard = shard_of(record);
    return std::any_of(record.uses.begin(), record.uses.end(), [=](auto& slot) { return take_out(slot, use, shard); });
}

/// Takes out a lock at that address, of whatever kind, if the record lists one.
bool take_lock_from(const ThreadRecord& record, const void* lock) noexcept
{
    const std::size_t shard = shard_of(record);
    const auto address = reinterpret_cast<std::uintptr_t>(lock);
    constexpr Use but_kind = call_bit | ((Use{1} << kind_shift) - 1);
    return std::any_of(record.uses.begin(), record.uses.end(), [=](auto& slot) {
        const Use use = slot.load(std::memory_order_relaxed);
        return (use & but_kind) == address && take_out(slot, use, shard);
    });
}

bool list(const void* object, SyncObjectKind kind, Use bits) noexcept
{
    if (!attached.load(std::memory_order_acquire) || !is_durable_object(object, kind)) {
        return false;
    }
    const ThreadRecord* const record = fase::own_record != nullptr ? fase::own_record : attach_thread();
    if (record == nullptr) {
        return false;
    }
    const Use use = use_of(object, kind) | bits;
    any.store(true, std::memory_order_relaxed);
    const auto free_slot = std::find_if(record->uses.begin(), record->uses.end(),
                                        [](const auto& slot) { return slot.load(std::memory_order_relaxed) == 0; });
    if (free_slot != record->uses.end()) {
        regions.add(address_of(use), shard_of(*record));
        free_slot->store(use, std::memory_order_relaxed);
    } else if (!put_beside(use, 0)) {
        return false;
    }
    wait_for_capture();
    return true;
}

}  // namespace

bool begin_call(const void* object, SyncObjectKind kind) noexcept { return list(object, kind, call_bit); }

void end_call(const void* object, SyncObjectKind kind) noexcept
{
    const Use use = use_of(object, kind) | call_bit;
    // Not found: the object was destroyed meanwhile, which libc allows when the thread was woken.
    if (!take_from(*fase::own_record, use)) {
        any_overflow_use([use](OverflowUse& entry, Use other) { return other == use && take_out_overflow_use(entry, use); });
    }
    wait_for_capture();
}

void begin_lock_slowly(const void* lock, SyncObjectKind kind) noexcept { static_cast<void>(list(lock, kind, 0)); }

void end_lock_slowly(const void* lock) noexcept
{
    // Nearly always the thread's own record lists it: others' counters, which change all the time, are not read.
    if (fase::own_record != nullptr && take_lock_from(*fase::own_record, lock)) {
        wait_for_capture();
        return;
    }
    if (!regions.may_hold_one_in(reinterpret_cast<std::uintptr_t>(lock), 1)) {
        return;
    }
    for (const auto kind : {SyncObjectKind::mutex, SyncObjectKind::rwlock, SyncObjectKind::spinlock}) {
        const Use use = use_of(lock, kind);
        bool ended = any_overflow_use([use](OverflowUse& entry, Use other) { return other == use && take_out_overflow_use(entry, use); });
        // Another thread may have acquired it.
        for (ThreadWalk walk; !ended && walk.current() != nullptr; walk.advance()) {
            ended = take_from(*walk.current(), use);
        }
        if (ended) {
            wait_for_capture();
            return;
        }
    }
}

void mutex_orphaned(const void* mutex) noexcept
{
    if (attached.load(std::memory_order_acquire) && is_durable_object(mutex, SyncObjectKind::orphaned_mutex)) {
        any.store(true, std::memory_order_relaxed);
        static_cast<void>(put_beside(use_of(mutex, SyncObjectKind::orphaned_mutex), os::thread_id()));
        wait_for_capture();
    }
}

void thread_ended() noexcept
{
    if (!any.load(std::memory_order_relaxed)) {
        return;
    }
    for (auto& slot : fase::own_record->uses) {
        const Use use = slot.load(std::memory_order_relaxed);
        if (use != 0 && (use & call_bit) == 0 && attached.load(std::memory_order_acquire)) {
            if (kind_of(use) == SyncObjectKind::mutex && is_robust(object_of(use))) {
                mutex_orphaned(object_of(use));
            } else {
                static_cast<void>(put_beside(use, os::thread_id()));
            }
        }
    }
    drop(*fase::own_record);
    wait_for_capture();
}

void drop(const ThreadRecord& record) noexcept
{
    if (any.load(std::memory_order_relaxed)) {
        for (auto& slot : record.uses) {
            if (const Use use = slot.load(std::memory_order_relaxed); use != 0) {
                take_out(slot, use, shard_of(record));
            }
        }
    }
}

void forget(const void* address, std::size_t size) noexcept
{
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t nearest = first - std::min<std::uintptr_t>(first, sync_object_bytes_max);
    if (!any.load(std::memory_order_relaxed) || size == 0 || !regions.may_hold_one_in(nearest, first - nearest + size) ||
        is_removed(Canary::forgotten_uses)) {
        return;
    }
    const auto dies = [=](Use use) {
        const std::uintptr_t begin = address_of(use);
        return begin < first ? first - begin < sync_object_bytes(kind_of(use)) : begin - first < size;
    };
    for (ThreadWalk walk; walk.current() != nullptr; walk.advance()) {
        for (auto& slot : walk.current()->uses) {
            if (const Use use = slot.load(std::memory_order_relaxed); use != 0 && dies(use)) {
                take_out(slot, use, shard_of(*walk.current()));
            }
        }
    }
    any_overflow_use([&](OverflowUse& entry, Use use) {
        if (dies(use)) {
            take_out_overflow_use(entry, use);
        }
        return false;
    });
    wait_for_capture();
}

void begin_capture() noexcept
{
    capturing.store(1, std::memory_order_relaxed);
    sync::fence(std::memory_order_seq_cst);
}

void end_capture() noexcept
{
    capturing.store(0, std::memory_order_release);
    os::futex_wake(capturing);
}

void for_each(Visit visit, void* context) noexcept
{
    if (!any.load(std::memory_order_relaxed)) {
        return;
    }
    for (ThreadWalk walk; walk.current() != nullptr; walk.advance()) {
        for (const auto& slot : walk.current()->uses) {
            // A use that has ended has left its last bytes.
            if (const Use use = slot.load(std::memory_order_acquire); use != 0) {
                visit(context, object_of(use), kind_of(use));
            }
        }
    }
    any_overflow_use([&](OverflowUse& entry, Use use) {
        const int thread_id = entry.thread_id.load(std::memory_order_relaxed);
        if (thread_id != 0 && !is_still_left_behind(use, thread_id)) {
            // The kernel has marked nothing, as a tracker of marks sees it.
            note_lock_store(object_of(use), sync_object_bytes(kind_of(use)));
            take_out_overflow_use(entry, use);
        } else {
            visit(context, object_of(use), kind_of(use));
        }
        return false;
    });
}

void reset_after_fork() noexcept
{
    capturing.store(0, std::memory_order_relaxed);
    beside_lock.reset_after_fork();
}

}  // namespace stillpoint::sync_uses
