#pragma once
// The runtime's knowledge by the address of an object in durable memory ends with the object. Every way by which a block is freed,
// moved or made smaller comes here first: inside the FASE that does it, and before another thread can be given the memory.

#include <atomic>

#include "heap/heap.hpp"
#include "runtime/fase.hpp"
#include "runtime/sync_uses.hpp"

namespace stillpoint {

/// The action of an engine, or of a check of it, where memory dies; set at most once. Usually nullptr: nothing. Must not call malloc.
using MemoryDiesHook = void (*)(const void* begin, std::size_t size_bytes) noexcept;
[[gnu::visibility("hidden")]] extern constinit std::atomic<MemoryDiesHook> memory_dies_hook;

/// Nothing is known by address of memory in any block: two loads.
[[nodiscard]] inline bool nothing_is_known_by_address() noexcept
{
    return !sync_uses::any.load(std::memory_order_relaxed) && memory_dies_hook.load(std::memory_order_relaxed) == nullptr;
}

/// Ends the knowledge of locks in [begin, + size).
inline void forget_by_address(const void* begin, std::size_t size_bytes) noexcept
{
    if (sync_uses::any.load(std::memory_order_relaxed)) [[unlikely]] {
        sync_uses::forget(begin, size_bytes);
        fase_forget_locks(begin, size_bytes);
    }
}

/// [begin, + size) is about to become free.
inline void memory_dies(const void* begin, std::size_t size_bytes) noexcept
{
    forget_by_address(begin, size_bytes);
    if (const MemoryDiesHook hook = memory_dies_hook.load(std::memory_order_acquire); hook != nullptr) [[unlikely]] {
        hook(begin, size_bytes);
    }
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

/// As release_block(), for an engine that has dealt with the end of the block itself: the hook is not called.
inline void release_block_of_engine(Heap& heap, void* block) noexcept
{
    if (sync_uses::any.load(std::memory_order_relaxed)) [[unlikely]] {
        if (const Heap::Block found = heap.find_block(block); found.begin == block) {
            forget_by_address(block, found.usable_bytes);
        }
    }
    heap.deallocate(block);
}

}  // namespace stillpoint
