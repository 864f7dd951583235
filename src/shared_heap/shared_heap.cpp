#include "shared_heap/shared_heap.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sys/mman.h>

namespace stillpoint::shared_heap {

namespace {

std::byte* map_shared(std::size_t bytes) noexcept
{
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

bool SharedHeap::begin() noexcept
{
    std::byte* const tables = map_shared(sizeof(Shared));
    std::byte* const memory = map_shared((chunks_max + 1) * chunk_bytes);
    if (tables == nullptr || memory == nullptr) {
        return false;
    }
    shared_ = reinterpret_cast<Shared*>(tables);  // Zeroes are its first value.
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    base_ = memory + ((chunk_bytes - address % chunk_bytes) % chunk_bytes);
    return true;
}

/// A block leaves its list by one store, so a process that dies here loses that block at most.
void* SharedHeap::allocate_small(std::size_t size_class) noexcept
{
    Class& blocks = shared_->classes[size_class];
    const std::size_t bytes = size_classes::bytes_of(size_class);
    const std::lock_guard guard(blocks.lock);
    if (std::byte* const block = blocks.free; block != nullptr) {
        std::memcpy(&blocks.free, block, sizeof blocks.free);
        return block;
    }
    if (blocks.fresh == nullptr || blocks.fresh + bytes > blocks.fresh_end) {
        const std::size_t chunk = shared_->chunks.take_for_class(static_cast<std::uint32_t>(size_class));
        if (chunk == ChunkMap::none) {
            return nullptr;
        }
        blocks.fresh = nullptr;
        blocks.fresh_end = base_ + (chunk + 1) * chunk_bytes;
        blocks.fresh = base_ + chunk * chunk_bytes;
    }
    std::byte* const block = blocks.fresh;
    blocks.fresh = block + bytes;
    return block;
}

void* SharedHeap::allocate(std::size_t bytes, std::size_t alignment, bool* is_zeroed) noexcept
{
    // Blocks of a class that is a power of two are aligned to it.
    const std::size_t wanted = alignment > least_alignment ? std::bit_ceil(std::max(bytes, alignment)) : bytes;
    if (wanted <= small_bytes_max) {
        *is_zeroed = false;
        return allocate_small(size_classes::class_for(wanted));
    }
    if (bytes > chunks_max * chunk_bytes) {
        return nullptr;
    }
    *is_zeroed = true;
    const std::size_t chunk = shared_->chunks.take((bytes + chunk_bytes - 1) / chunk_bytes, (alignment + chunk_bytes - 1) / chunk_bytes);
    return chunk == ChunkMap::none ? nullptr : base_ + chunk * chunk_bytes;
}

void SharedHeap::free(void* block) noexcept
{
    const std::size_t size_class = shared_->chunks.class_of(chunk_of(block));
    if (size_class == ChunkMap::none) {
        shared_->chunks.give_back(chunk_of(block), base_);
        return;
    }
    Class& blocks = shared_->classes[size_class];
    const std::lock_guard guard(blocks.lock);
    std::memcpy(block, &blocks.free, sizeof blocks.free);
    blocks.free = static_cast<std::byte*>(block);
}

std::size_t SharedHeap::usable_size(const void* block) const noexcept
{
    const std::size_t size_class = shared_->chunks.class_of(chunk_of(block));
    return size_class == ChunkMap::none ? shared_->chunks.count_of(chunk_of(block)) * chunk_bytes : size_classes::bytes_of(size_class);
}

}  // namespace stillpoint::shared_heap
