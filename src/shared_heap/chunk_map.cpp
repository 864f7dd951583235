#include "shared_heap/chunk_map.hpp"

#include <mutex>
#include <sys/mman.h>

namespace stillpoint::shared_heap {

std::size_t ChunkMap::find_free(std::size_t count, std::size_t alignment_chunks) const noexcept
{
    std::size_t begin = 0;
    while (begin + count <= top_) {
        std::size_t length = 0;
        while (length < count && is_free(begin + length)) {
            ++length;
        }
        if (length == count) {
            return begin;
        }
        begin = (begin + length + alignment_chunks) / alignment_chunks * alignment_chunks;
    }
    return none;
}

std::size_t ChunkMap::take(std::size_t count, std::size_t alignment_chunks) noexcept
{
    const std::lock_guard guard(lock_);
    std::size_t first = free_count_ >= count ? find_free(count, alignment_chunks) : none;
    if (first == none) {
        first = (top_ + alignment_chunks - 1) / alignment_chunks * alignment_chunks;
        if (count > chunks_max || first > chunks_max - count) {
            return none;
        }
        free_count_ += first - top_;
        top_ = first + count;
    } else {
        free_count_ -= count;
    }
    for (std::size_t i = 1; i < count; ++i) {
        words_[first + i].store(later, std::memory_order_relaxed);
    }
    words_[first].store(static_cast<std::uint32_t>(count << 1), std::memory_order_release);
    return first;
}

std::size_t ChunkMap::take_for_class(std::uint32_t size_class) noexcept
{
    const std::size_t chunk = take(1, 1);
    if (chunk != none) {
        words_[chunk].store(class_base + size_class, std::memory_order_release);
    }
    return chunk;
}

void ChunkMap::give_back(std::size_t first, std::byte* base) noexcept
{
    const std::size_t count = count_of(first);
    madvise(base + first * chunk_bytes, count * chunk_bytes, MADV_REMOVE);  // They read as zero afterwards.
    const std::lock_guard guard(lock_);
    for (std::size_t i = 0; i < count; ++i) {
        words_[first + i].store(0, std::memory_order_relaxed);
    }
    free_count_ += count;
}

}  // namespace stillpoint::shared_heap
