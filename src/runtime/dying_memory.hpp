#pragma once
// What the runtime knows by the address of an object in durable memory ends with the object. Every way by which a block is freed,
// moved or made smaller comes here first: inside the FASE that does it, and before another thread can be given the memory.

#include "heap/heap.hpp"
#include "runtime/fase.hpp"
#include "runtime/respct_checks.hpp"
#include "runtime/sync_uses.hpp"

namespace stillpoint {

/// Nothing is known by address of memory in any block: one load, nearly always.
[[nodiscard]] inline bool nothing_is_known_by_address() noexcept
{
    return !sync_uses::any.load(std::memory_order_relaxed) && !respct_checks::watched();
}

/// [begin, + size) is about to belong to nobody.
inline void memory_dies(const void* begin, std::size_t size_bytes) noexcept
{
    if (sync_uses::any.load(std::memory_order_relaxed)) [[unlikely]] {
        sync_uses::forget(begin, size_bytes);
        fase_forget_locks(begin, size_bytes);
    }
    respct_checks_note_freed(begin, size_bytes);
}

/// Frees a block of the heap that the caller knows to be one, or that the heap then refuses.
inline void release_block(Heap& heap, void* block) noexcept
{
    if (!nothing_is_known_by_address()) [[unlikely]] {
        if (const Heap::Block found = heap.find_block(block); found.begin == block) {
            memory_dies(block, found.usable_bytes);
        }
    }
    heap.deallocate(block);
}

}  // namespace stillpoint
