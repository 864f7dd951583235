#pragma once
// Synchronisation objects in durable memory that may hold, in a quiescent state, what does not survive
// the process: waiters of condition variables, barriers and semaphores, a mutex around a condition
// wait, an ignored lock. Recovery makes them fresh. A durable table (image_layout.hpp, SyncObjectRecord)
// lists those that were used; a set in DRAM tells quickly that one is listed already.
//
// Every other mutex, rwlock and spinlock is free in a quiescent state, and a free one of glibc holds
// nothing of the process (docs/quiescence.md): they need no entry.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "pool/image.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint {

/// What a table entry says its address is. The values are part of the pool's format.
enum class SyncObjectKind : std::uint64_t {
    condition = 1,
    barrier = 2,
    semaphore = 3,
    mutex = 4,           ///< waited with, or ignored
    rwlock = 5,          ///< ignored
    spinlock = 6,        ///< ignored
    orphaned_mutex = 7,  ///< robust, left locked by a thread that ended
};

namespace sync_objects {
/// Not 0: a table is attached. Alone tested on the way of every condition wait.
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint32_t> attached;
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint32_t> mirror_count;
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint32_t> entry_count;

void note_slowly(const void* address, SyncObjectKind kind) noexcept;
void forget_slowly(const void* address, std::size_t size) noexcept;

inline bool may_be_durable(const void* address) noexcept
{
    return stillpoint_is_persistent(address) || mirror_count.load(std::memory_order_relaxed) != 0;
}
}  // namespace sync_objects

/// Takes the table of an image that the engine recovered, resets every object in it, and from then on
/// records new ones. Call inside a FASE, before threads of the program run and before mirrored
/// ranges are copied into program memory. Errors: pool_corrupt (an entry that no run wrote), no_memory.
[[nodiscard]] Result<void> sync_objects_attach(std::byte* image_base,
                                               const ImageGeometry& geometry,
                                               std::uint64_t image_bytes);
/// New objects are not recorded any more.
void sync_objects_detach() noexcept;

/// Objects in `program_memory` (SP_PERSISTENT variables) are recorded under the address of their
/// durable copy, which is the same in the next run. At most 32 ranges; before threads run.
void sync_objects_add_mirror(const std::byte* program_memory, std::byte* image_copy,
                             std::size_t size) noexcept;

/// Whether the byte at `address` belongs to what libc keeps of waiters, and of locks that no FASE holds, in a recorded
/// object: nobody marks it, and recovery makes it fresh. In a stop, or where no thread changes the table.
[[nodiscard]] bool is_reset_by_recovery(std::uintptr_t address) noexcept;

/// Every entry names an object inside the heap. `image` may be mapped anywhere; addresses in it are
/// relative to `image_address`. Errors: pool_corrupt, naming the entry.
[[nodiscard]] Result<void> sync_objects_check(const std::byte* image, std::uintptr_t image_address,
                                              const ImageGeometry& geometry,
                                              std::uint64_t image_bytes);

/// The object at `address` is about to be used in a way that can leave state behind. A shift and
/// a compare for volatile memory. Recording is a FASE of its own, or part of the caller's.
inline void sync_object_used(const void* address, SyncObjectKind kind) noexcept
{
    if (sync_objects::may_be_durable(address)) [[unlikely]] {
        sync_objects::note_slowly(address, kind);
    }
}

/// The object was destroyed.
inline void sync_object_destroyed(const void* address) noexcept
{
    if (sync_objects::entry_count.load(std::memory_order_relaxed) != 0 &&
        sync_objects::may_be_durable(address)) [[unlikely]] {
        sync_objects::forget_slowly(address, 1);
    }
}

/// False, nearly always: then sync_objects_block_freed() has nothing to look for.
[[nodiscard]] inline bool sync_objects_recorded() noexcept
{
    return sync_objects::entry_count.load(std::memory_order_relaxed) != 0;
}

/// A heap block is about to be freed or moved: objects in it exist no more. Call inside the FASE that
/// frees it. One load while no object is recorded.
inline void sync_objects_block_freed(const void* address, std::size_t size) noexcept
{
    if (sync_objects_recorded()) [[unlikely]] {
        sync_objects::forget_slowly(address, size);
    }
}

}  // namespace stillpoint
