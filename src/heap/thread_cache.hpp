#pragma once
// Thread caches: per thread, heap and class, a stack of free blocks. Taking from it and putting into it is
// the fast path: no lock, no atomic read-modify-write. A block freed by another thread than
// the one that allocated it simply goes into the freeing thread's cache.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "heap/delayed_frees.hpp"
#include "heap/heap_state.hpp"

namespace stillpoint::heap {

struct CacheBin {
    CachedBlock* blocks;
    std::uint32_t count;
    std::uint32_t capacity;
};

/// A free of which the mark is not cleared yet.
struct WaitingFree {
    CachedBlock block;
    std::uint32_t tag;
};
inline constexpr std::size_t waiting_frees_max = 16;

/// Whether the calling thread's frees may wait: Heap::let_frees_wait.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local bool frees_may_wait;

/// Lifetime: from mmap, and never unmapped: it passes from thread to thread, and from a heap that is detached (empty) to the next
/// with the same state, so that a thread's pointer to its own is always valid.
struct ThreadCache {
    CacheBin bins[tag_end];        ///< those of typed spans have room once they are used
    HeapState* heap = nullptr;     ///< never changes
    DelayedFrees delayed;
    std::array<WaitingFree, waiting_frees_max> waiting{};  ///< a ring; block nullptr: nothing
    std::uint32_t next_waiting = 0;
    std::atomic<int> owner{0};     ///< thread id; 0: none
    std::uint32_t home = 0;        ///< below homes_max; never changes
    ThreadCache* next = nullptr;   ///< on the list of HeapState::registry, under its lock
};

/// The calling thread's caches, by the number of the heap; nullptr before its first use and after flush. Initial-exec: this
/// library is loaded at program start, and a lazily allocated TLS block would call malloc.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadCache* thread_caches[Heap::heaps_max];
[[nodiscard]] inline ThreadCache* thread_cache(const HeapState& state) noexcept { return thread_caches[state.number]; }

/// Bits, by the number of the heap: the calling thread's cache of it may have waiting frees. The thread looks at no other, since
/// another thread may be detaching that heap.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local std::uint32_t heaps_with_waiting_frees;
static_assert(Heap::heaps_max <= 32);

/// Gives the bin of a tag its room. False: no memory.
[[nodiscard]] bool make_room_in_bin(HeapState& state, CacheBin& bin, std::uint32_t tag) noexcept;

/// Finds or makes the calling thread's cache of a heap. nullptr: no memory for one.
[[nodiscard]] ThreadCache* register_thread(HeapState& state) noexcept;
/// Finds it, or makes it if it is not there yet.
[[nodiscard]] inline ThreadCache* own_cache(HeapState& state) noexcept
{
    ThreadCache* const cache = thread_cache(state);
    return cache != nullptr ? cache : register_thread(state);
}
/// A thread that got no memory for a cache uses the first home.
[[nodiscard]] inline std::uint32_t own_home(const HeapState& state) noexcept
{
    const ThreadCache* const cache = thread_cache(state);
    return cache != nullptr ? cache->home : 0;
}
/// How many homes any thread has had.
[[nodiscard]] std::uint32_t homes_in_use(const HeapState& state) noexcept;
/// Empties the calling thread's cache into the central lists and gives it up.
void unregister_thread(HeapState& state) noexcept;
/// Empties it, and keeps it.
void flush_own_cache(HeapState& state) noexcept;
/// Empties caches of threads that ended without flush_thread_cache().
void reclaim_dead_threads(HeapState& state) noexcept;
/// At detach: forgets all cached blocks.
void drop_all_caches(HeapState& state) noexcept;

/// Where the calling thread's failures go, those of every heap. Never allocates.
[[nodiscard]] Failure& failure_slot() noexcept;

}  // namespace stillpoint::heap
