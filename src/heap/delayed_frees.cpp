#include "heap/delayed_frees.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/mman.h>

#include "core/canary.hpp"
#include "heap/thread_cache.hpp"

namespace stillpoint::heap {

namespace {

DelayedChunk* take_chunk(DelayedFrees& delayed) noexcept
{
    if (DelayedChunk* chunk = delayed.unused; chunk != nullptr) {
        delayed.unused = chunk->next;
        return chunk;
    }
    const int saved_errno = errno;
    void* memory = mmap(nullptr, DelayedChunk::bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    return memory == MAP_FAILED ? nullptr : static_cast<DelayedChunk*>(memory);
}

/// Neighbours of one tag go together.
void give_back(ThreadCache& cache, const DelayedBlock* blocks, std::uint32_t count) noexcept
{
    constexpr std::uint32_t batch_max = 64;
    CachedBlock batch[batch_max];
    for (std::uint32_t i = 0; i < count;) {
        const std::uint32_t tag = blocks[i].tag;
        CacheBin& bin = cache.bins[tag];
        std::uint32_t taken = 0;
        for (; i < count && blocks[i].tag == tag && taken < batch_max; ++i) {
            if (bin.count != bin.capacity) {
                bin.blocks[bin.count++] = blocks[i].block;
            } else {
                batch[taken++] = blocks[i].block;
            }
        }
        if (taken != 0) {
            central_give(*cache.heap, tag, batch, taken);
        }
    }
}

}  // namespace

bool delay_free(ThreadCache& cache, const CachedBlock& block, std::uint32_t tag) noexcept
{
    DelayedFrees& delayed = cache.delayed;
    const std::uint64_t epoch = logged::running() >> 1;
    if (delayed.last == nullptr || delayed.last->epoch != epoch || delayed.last->count == DelayedChunk::capacity) {
        settle_delayed_frees(cache);
        DelayedChunk* const chunk = take_chunk(delayed);
        if (chunk == nullptr) {
            return false;
        }
        chunk->next = nullptr;
        chunk->epoch = is_removed(Canary::delayed_reuse) ? 0 : epoch;
        chunk->count = 0;
        (delayed.last != nullptr ? delayed.last->next : delayed.first) = chunk;
        delayed.last = chunk;
    }
    delayed.last->blocks[delayed.last->count++] = {block, tag};
    return true;
}

void settle_delayed_frees(ThreadCache& cache) noexcept
{
    DelayedFrees& delayed = cache.delayed;
    const std::uint64_t durable = logged::durable_epoch.load(std::memory_order_acquire);
    while (delayed.first != nullptr && delayed.first->epoch <= durable) {
        DelayedChunk* const chunk = delayed.first;
        give_back(cache, chunk->blocks, chunk->count);
        delayed.first = chunk->next;
        if (delayed.first == nullptr) {
            delayed.last = nullptr;
        }
        chunk->next = delayed.unused;
        delayed.unused = chunk;
    }
}

void drop_delayed_frees(DelayedFrees& delayed) noexcept
{
    for (DelayedChunk* list : {delayed.first, delayed.unused}) {
        while (list != nullptr) {
            DelayedChunk* const chunk = list;
            list = chunk->next;
            munmap(chunk, DelayedChunk::bytes);
        }
    }
    delayed = {};
}

}  // namespace stillpoint::heap
