#pragma once
// Synchronisation objects in durable memory that held, when an epoch was captured, what does not survive the process: waiters
// of condition variables, barriers and semaphores, a mutex around a condition wait, a lock that is held and is no FASE. The stop
// lists them in a durable table (image_layout.hpp, SyncObjectRecord), as part of the epoch, and recovery makes them fresh.
//
// A record is proof: at the moment of the capture a thread was inside a call on that object, or held it (sync_uses.hpp), and what
// is recovered are the bytes of that moment. So nothing else can lie at the address. Every other mutex, rwlock and
// spinlock is free in a quiescent state, and an object of glibc that no thread uses holds nothing of the process
// (docs/internals/quiescence.md): they need no record.
//
// Each open pool has its own table, and a capture lists what lies in its own image.
//
// Images with logged tables (engines that have no one moment for all bytes) keep the table empty: there locks are members of
// typed blocks.

#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "heap/heap.hpp"
#include "pool/image.hpp"
#include "runtime/sync_uses.hpp"

namespace stillpoint {

/// Takes the table of an image that the engine recovered, mapped where `heap` says, makes every object in it fresh, empties it, and
/// from then on lets threads list what they use. Call inside a FASE, before threads of the program run and before mirrored
/// ranges are copied into program memory. Errors: pool_corrupt (an entry that no run wrote), no_memory.
[[nodiscard]] Result<void> sync_objects_attach(const Heap::Options& heap, const ImageGeometry& geometry);
/// Uses in the image at that address, or in any, are not listed any more.
void sync_objects_detach(const std::byte* image_base) noexcept;
void sync_objects_detach_all() noexcept;

/// Objects in `program_memory` (SP_PERSISTENT variables) are recorded under the address of their
/// durable copy in an attached image, which is the same in the next run. At most 32 ranges; before threads run.
void sync_objects_add_mirror(const std::byte* program_memory, std::byte* image_copy, std::size_t size) noexcept;

/// Around all that a stop reads of the image at `image_base`: the table is made first. On the checkpoint thread. `prepare` is called before
/// each store into the table: SIGSEGV is blocked in that thread, so a tracker that takes stores as faults must not meet one.
class SyncObjectsCapture {
public:
    using Prepare = void (*)(void* context, std::byte* address, std::size_t size);
    SyncObjectsCapture(const std::byte* image_base, Prepare prepare, void* context) noexcept;
    ~SyncObjectsCapture() { sync_uses::end_capture(); }
    SyncObjectsCapture(const SyncObjectsCapture&) = delete;
    SyncObjectsCapture& operator=(const SyncObjectsCapture&) = delete;
};

/// Whether the byte at `address` belongs to what libc keeps of waiters, and of locks that no FASE holds, in an object that the
/// last capture has recorded: nothing marks it, and recovery makes it fresh. In a stop.
[[nodiscard]] bool is_reset_by_recovery(std::uintptr_t address) noexcept;

/// Every entry names an object in one block of the heap, and none of the heap's own tables. The image may be mapped anywhere;
/// addresses in it are relative to `image_address`. The heap is sound (Heap::check). Errors: pool_corrupt, naming the entry.
[[nodiscard]] Result<void> sync_objects_check(const Heap::Options& heap, std::uintptr_t image_address, const ImageGeometry& geometry);

}  // namespace stillpoint
