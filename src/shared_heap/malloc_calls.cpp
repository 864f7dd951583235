// malloc and its relatives. libc calls them by these names, too, for what it allocates.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shared_heap/shared_heap.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

// libc's own, under names that nothing replaces.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* block);
}

namespace {

using stillpoint::shared_heap::least_alignment;
using stillpoint::shared_heap::SharedHeap;

constinit SharedHeap heap;

void* allocate(std::size_t bytes, std::size_t alignment, bool* is_zeroed) noexcept
{
    void* const block = heap.allocate(bytes, alignment, is_zeroed);
    if (block == nullptr) {
        errno = ENOMEM;
    }
    return block;
}

void* allocate(std::size_t bytes, std::size_t alignment) noexcept
{
    bool is_zeroed = false;
    return heap.has_begun()              ? allocate(bytes, alignment, &is_zeroed)
           : alignment > least_alignment ? __libc_memalign(alignment, bytes)
                                         : __libc_malloc(bytes);
}

/// libc counts its blocks from the word before them: size and three flags, of which the second says that the block is a mapping.
std::size_t usable_size_of_libc(const void* block) noexcept
{
    std::size_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(block) - sizeof word, sizeof word);
    const std::size_t overhead = (word & 2) != 0 ? 2 * sizeof word : sizeof word;
    return (word & ~std::size_t{7}) - overhead;
}

bool is_power_of_two(std::size_t value) noexcept { return value != 0 && (value & (value - 1)) == 0; }

}  // namespace

/// Allocations are shared from here on. Returns 0, or -1: no memory. For the first process of a program, before it has others.
EXPORT int stillpoint_shared_heap(void) { return heap.has_begun() || heap.begin() ? 0 : -1; }
/// In the process of a new thread, before it allocates.
EXPORT void stillpoint_shared_heap_new_process(void) { stillpoint::shared_heap::RobustLock::forget_process(); }

EXPORT void* malloc(std::size_t bytes) { return allocate(bytes, least_alignment); }

EXPORT void free(void* block)
{
    if (heap.contains(block)) {
        heap.free(block);
    } else {
        __libc_free(block);
    }
}

EXPORT void* calloc(std::size_t count, std::size_t bytes)
{
    if (!heap.has_begun()) {
        return __libc_calloc(count, bytes);
    }
    std::size_t total = 0;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        errno = ENOMEM;
        return nullptr;
    }
    bool is_zeroed = false;
    void* const block = allocate(total, least_alignment, &is_zeroed);
    return block == nullptr || is_zeroed ? block : std::memset(block, 0, total);
}

EXPORT std::size_t malloc_usable_size(void* block)
{
    return block == nullptr ? 0 : heap.contains(block) ? heap.usable_size(block) : usable_size_of_libc(block);
}

EXPORT void* realloc(void* block, std::size_t bytes)
{
    if (!heap.has_begun()) {
        return __libc_realloc(block, bytes);
    }
    if (block == nullptr) {
        return malloc(bytes);
    }
    if (bytes == 0) {
        free(block);
        return nullptr;
    }
    const std::size_t old_bytes = malloc_usable_size(block);
    if (heap.contains(block) && bytes <= old_bytes && bytes > old_bytes / 2) {
        return block;
    }
    void* const moved = malloc(bytes);
    if (moved != nullptr) {
        std::memcpy(moved, block, old_bytes < bytes ? old_bytes : bytes);
        free(block);
    }
    return moved;
}

EXPORT void* reallocarray(void* block, std::size_t count, std::size_t bytes)
{
    std::size_t total = 0;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        errno = ENOMEM;
        return nullptr;
    }
    return realloc(block, total);
}

EXPORT int posix_memalign(void** place, std::size_t alignment, std::size_t bytes)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) {
        return EINVAL;
    }
    const int saved_errno = errno;
    void* const block = allocate(bytes, alignment);
    errno = saved_errno;
    if (block == nullptr) {
        return ENOMEM;
    }
    *place = block;
    return 0;
}

EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes)
{
    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return nullptr;
    }
    return allocate(bytes, alignment);
}

EXPORT void* memalign(std::size_t alignment, std::size_t bytes) { return aligned_alloc(alignment, bytes); }
EXPORT void* valloc(std::size_t bytes) { return allocate(bytes, 4096); }
EXPORT void* pvalloc(std::size_t bytes) { return allocate((bytes + 4095) / 4096 * 4096, 4096); }
