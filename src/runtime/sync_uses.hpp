#pragma once
// Which synchronisation objects in durable memory are in use by a thread right now: it is inside a wait or a wake-up, or it holds
// a lock that is no FASE. Only such an object can hold, in a quiescent state, what does not survive the process; and its use
// is the proof that it is one, and not other data in its former place (docs/internals/quiescence.md, "What lies in locks at a checkpoint").
//
// A thread lists its uses in its record. While a checkpoint captures the image no use begins or ends:
//   thread:       change the list; fence; while a capture continues, wait. Then call libc, or return to the program.
//   checkpointer: say that a capture continues; fence; read the lists.
// So the lists that it reads name every object whose bytes in the capture may be those of a use.
//
// No malloc, no lock of the program; a capture never waits for a thread.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "stillpoint/stillpoint.h"

namespace stillpoint {

struct ThreadRecord;

/// The kind of an object. The values are part of the pool's format.
enum class SyncObjectKind : std::uint8_t {
    condition = 1,
    barrier = 2,
    semaphore = 3,
    mutex = 4,  ///< waited with, or held without a FASE
    rwlock = 5,  ///< held without a FASE
    spinlock = 6,  ///< held without a FASE
    orphaned_mutex = 7,  ///< robust, left locked by a thread that ended
};

namespace sync_uses {

/// Members are counted for each region of 64 KiB; regions share counters. Tells quickly that nothing is listed somewhere. Counters
/// are kept in shards, so that threads which take locks in one region count in lines of their own: a member is removed from the shard
/// that it was added to, whichever thread removes it.
class Regions {
public:
    static constexpr std::size_t shards = 8;

    void add(std::uintptr_t address, std::size_t shard = 0) noexcept { counter_of(address, shard).fetch_add(1, std::memory_order_relaxed); }
    void remove(std::uintptr_t address, std::size_t shard = 0) noexcept
    {
        counter_of(address, shard).fetch_sub(1, std::memory_order_relaxed);
    }
    /// False: no member lies in [address, + size).
    [[nodiscard]] bool may_hold_one_in(std::uintptr_t address, std::size_t size) const noexcept;

private:
    static constexpr unsigned region_shift = 16;
    static constexpr std::size_t region_count = 4096;

    std::atomic<std::uint32_t>& counter_of(std::uintptr_t address, std::size_t shard) noexcept
    {
        return members_[shard][(address >> region_shift) % region_count];
    }

    std::array<std::array<std::atomic<std::uint32_t>, region_count>, shards> members_{};
};

/// Durable memory is tracked: set by sync_objects_attach, and where it is clear nothing is listed.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> attached;
/// Ranges of program memory with a durable copy.
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint32_t> mirror_count;
/// Something durable was in use, or ignored, in this process. Once true it stays.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> any;
/// Regions with objects in use, and with ignored locks in durable memory.
[[gnu::visibility("hidden")]] extern constinit Regions regions;

inline bool may_be_durable(const void* address) noexcept
{
    return stillpoint_is_persistent(address) || mirror_count.load(std::memory_order_relaxed) != 0;
}

/// Whether an object of that kind may lie at `object`: in the heap of the image or in a mirrored range (sync_objects.cpp).
[[nodiscard]] bool is_durable_object(const void* object, SyncObjectKind kind) noexcept;

/// A call of libc, a wait or a wake-up. True: it is listed, and end_call() must follow.
[[nodiscard]] bool begin_call(const void* object, SyncObjectKind kind) noexcept;
void end_call(const void* object, SyncObjectKind kind) noexcept;

void begin_lock_slowly(const void* lock, SyncObjectKind kind) noexcept;
void end_lock_slowly(const void* lock) noexcept;

/// A lock that is no FASE is about to be acquired.
inline void begin_lock(const void* lock, SyncObjectKind kind) noexcept
{
    if (may_be_durable(lock)) [[unlikely]] {
        begin_lock_slowly(lock, kind);
    }
}
/// Notes that the lock was released, or not acquired.
inline void end_lock(const void* lock) noexcept
{
    if (any.load(std::memory_order_relaxed) && may_be_durable(lock)) [[unlikely]] {
        end_lock_slowly(lock);
    }
}

/// The calling thread ends: locks that it holds stay listed until they are released or die.
void thread_ended() noexcept;
/// Notes that the thread ends and holds that robust mutex: listed until the kernel has passed it on.
void mutex_orphaned(const void* mutex) noexcept;
/// The record belongs to no thread any more, and nothing is known of its end.
void drop(const ThreadRecord& record) noexcept;

/// Objects that overlap [address, + size) exist no more.
void forget(const void* address, std::size_t size) noexcept;

/// Called in a stop, on the checkpoint thread.
void begin_capture() noexcept;
void end_capture() noexcept;
using Visit = void (*)(void* context, const void* object, SyncObjectKind kind);
/// Between the two: every object in use, some of them several times.
void for_each(Visit visit, void* context) noexcept;

void reset_after_fork() noexcept;

}  // namespace sync_uses

/// A call of libc on an object: a wait or a wake-up. Also left by cancellation.
class SyncUse {
public:
    SyncUse(const void* object, SyncObjectKind kind) noexcept : object_(object), kind_(kind)
    {
        if (sync_uses::may_be_durable(object)) [[unlikely]] {
            is_listed_ = sync_uses::begin_call(object, kind);
        }
    }
    ~SyncUse()
    {
        if (is_listed_) [[unlikely]] {
            sync_uses::end_call(object_, kind_);
        }
    }
    SyncUse(const SyncUse&) = delete;
    SyncUse& operator=(const SyncUse&) = delete;

private:
    const void* object_;
    SyncObjectKind kind_;
    bool is_listed_ = false;
};

}  // namespace stillpoint
