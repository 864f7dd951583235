#pragma once
// Blocks that were freed and may not be given out again yet. A crash may roll memory back to an
// epoch in which they were live, and a new owner's stores would be in them. So a thread keeps what it frees, in order, until the epoch
// of the free is durable. A block that was allocated in the running epoch itself is not delayed: no older state knows it.

#include <cstdint>

#include "heap/heap_state.hpp"

namespace stillpoint::heap {

struct ThreadCache;

struct DelayedBlock {
    CachedBlock block;
    std::uint32_t tag;
};

/// Blocks freed in one epoch.
struct DelayedChunk {
    static constexpr std::size_t bytes = 16 * kib;
    static constexpr std::uint32_t capacity = (bytes - 32) / sizeof(DelayedBlock);

    DelayedChunk* next;
    std::uint64_t epoch;
    std::uint32_t count;
    DelayedBlock blocks[capacity];
};
static_assert(sizeof(DelayedChunk) <= DelayedChunk::bytes);

/// A thread's, oldest first. Chunks that are used up are kept for the next.
struct DelayedFrees {
    DelayedChunk* first = nullptr;
    DelayedChunk* last = nullptr;
    DelayedChunk* unused = nullptr;
};

/// False: no memory to remember it; the block is lost until the next start, when its cleared mark says that it is free.
[[nodiscard]] bool delay_free(ThreadCache& cache, const CachedBlock& block, std::uint32_t tag) noexcept;
/// Blocks whose epoch is durable go to the cache's bins, and beyond these to the central lists.
void settle_delayed_frees(ThreadCache& cache) noexcept;
/// Forgets all of them, at detach.
void drop_delayed_frees(DelayedFrees& delayed) noexcept;

}  // namespace stillpoint::heap
