#include "heap/thread_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stillpoint::heap {

// GCC forgets the declarations' TLS model here.
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadCache* thread_caches[Heap::heaps_max] = {};
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint32_t heaps_with_waiting_frees = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool frees_may_wait = false;
[[gnu::tls_model("initial-exec")]] static constinit thread_local Failure own_failure{};

namespace {

constexpr std::size_t cached_blocks_max = [] {
    std::size_t sum = 0;
    for (std::uint32_t c = 1; c <= class_count; ++c) {
        sum += cache_capacity(size_classes[c]);
    }
    return sum;
}();

int own_thread_id() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

/// The thread has ended: its id belongs to no thread. (An id that a new thread has got looks alive; that
/// thread adopts the cache when it registers, and the cache is found dead when it ends.)
bool is_dead(int thread_id) noexcept
{
    const int saved_errno = errno;
    const bool gone = syscall(SYS_tgkill, getpid(), thread_id, 0) != 0 && errno == ESRCH;
    errno = saved_errno;
    return gone;
}

/// A delayed block stays, until it may be given out again.
void empty(ThreadCache& cache) noexcept
{
    settle_delayed_frees(cache);
    for (std::uint32_t tag = 1; tag < tag_end; ++tag) {
        CacheBin& bin = cache.bins[tag];
        if (bin.count != 0) {
            central_give(*cache.heap, tag, bin.blocks, bin.count);
            bin.count = 0;
        }
    }
}

ThreadCache* make_cache(HeapState& state) noexcept
{
    const std::size_t bytes = sizeof(ThreadCache) + cached_blocks_max * sizeof(CachedBlock);
    const int saved_errno = errno;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    auto* cache = new (memory) ThreadCache{};
    cache->heap = &state;
    auto* blocks = reinterpret_cast<CachedBlock*>(cache + 1);
    for (std::uint32_t c = 1; c <= class_count; ++c) {
        cache->bins[c] = {blocks, 0, cache_capacity(size_classes[c])};
        blocks += cache_capacity(size_classes[c]);
    }
    CacheRegistry& registry = state.registry;
    const std::uint32_t made = registry.made.load(std::memory_order_relaxed);
    cache->home = made % homes_max;
    cache->next = registry.first;
    registry.first = cache;
    registry.made.store(made + 1, std::memory_order_relaxed);
    return cache;
}

/// Under the registry's lock. Looks at two caches a call, so that a program which starts many threads
/// that die unseen does not pile up their caches, and none pays for a search.
void reclaim_some(CacheRegistry& registry) noexcept
{
    for (int i = 0; i < 2 && registry.first != nullptr; ++i) {
        ThreadCache* cache = registry.hand != nullptr ? registry.hand : registry.first;
        registry.hand = cache->next;
        const int owner = cache->owner.load(std::memory_order_relaxed);
        if (owner != 0 && is_dead(owner)) {
            empty(*cache);
            cache->owner.store(0, std::memory_order_relaxed);
        }
    }
}

}  // namespace

bool make_room_in_bin(HeapState& state, CacheBin& bin, std::uint32_t tag) noexcept
{
    if (bin.capacity != 0) {
        return true;
    }
    const std::uint32_t capacity = cache_capacity(state.class_by_tag[tag]);
    const int saved_errno = errno;
    void* memory = mmap(nullptr, capacity * sizeof(CachedBlock), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    if (memory == MAP_FAILED) {
        return false;
    }
    bin = {static_cast<CachedBlock*>(memory), 0, capacity};
    return true;
}

ThreadCache* register_thread(HeapState& state) noexcept
{
    const int self = own_thread_id();
    CacheRegistry& registry = state.registry;
    const std::lock_guard hold(registry.lock);
    reclaim_some(registry);
    ThreadCache* found = nullptr;
    for (ThreadCache* cache = registry.first; cache != nullptr; cache = cache->next) {
        const int owner = cache->owner.load(std::memory_order_relaxed);
        if (owner == self) {  // A dead thread had this id; what it cached is this thread's now.
            found = cache;
            break;
        }
        if (owner == 0) {
            found = cache;
        }
    }
    if (found == nullptr) {
        found = make_cache(state);
    }
    if (found != nullptr) {
        found->owner.store(self, std::memory_order_relaxed);
        const auto waits = [](const WaitingFree& place) noexcept { return place.block.block != nullptr; };
        if (std::any_of(found->waiting.begin(), found->waiting.end(), waits)) {  // Their owner ended inside a FASE.
            heaps_with_waiting_frees |= std::uint32_t{1} << state.number;
        }
    }
    thread_caches[state.number] = found;
    return found;
}

std::uint32_t homes_in_use(const HeapState& state) noexcept
{
    return std::clamp(state.registry.made.load(std::memory_order_relaxed), std::uint32_t{1}, homes_max);
}

void flush_own_cache(HeapState& state) noexcept
{
    if (ThreadCache* const cache = thread_cache(state); cache != nullptr) {
        empty(*cache);
    }
}

void unregister_thread(HeapState& state) noexcept
{
    ThreadCache* const cache = thread_cache(state);
    if (cache == nullptr) {
        return;
    }
    const std::lock_guard hold(state.registry.lock);
    empty(*cache);
    cache->owner.store(0, std::memory_order_relaxed);
    thread_caches[state.number] = nullptr;
}

void reclaim_dead_threads(HeapState& state) noexcept
{
    const std::lock_guard hold(state.registry.lock);
    const ThreadCache* const own = thread_cache(state);
    for (ThreadCache* cache = state.registry.first; cache != nullptr; cache = cache->next) {
        const int owner = cache->owner.load(std::memory_order_relaxed);
        if (cache != own && (owner == 0 || is_dead(owner))) {
            empty(*cache);
            cache->owner.store(0, std::memory_order_relaxed);
        }
    }
}

void drop_all_caches(HeapState& state) noexcept
{
    const std::lock_guard hold(state.registry.lock);
    for (ThreadCache* cache = state.registry.first; cache != nullptr; cache = cache->next) {
        for (CacheBin& bin : cache->bins) {
            bin.count = 0;
        }
        for (std::uint32_t tag = typed_tag; tag < tag_end; ++tag) {
            if (CacheBin& bin = cache->bins[tag]; bin.capacity != 0) {  // The next heap may have another class for the tag.
                munmap(bin.blocks, bin.capacity * sizeof(CachedBlock));
                bin = {};
            }
        }
        drop_delayed_frees(cache->delayed);
        cache->waiting.fill({});
    }
}

Failure& failure_slot() noexcept { return own_failure; }

}  // namespace stillpoint::heap
