#pragma once
// Where a workload keeps its data: the one thing in which the measured programs differ.

#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace bench {

/// Memory of a workload. allocate() returns `size_bytes` at an address that `alignment_bytes` divides, uninitialised;
/// root() the one object of the workload, zeroed at its first call. Both end the program when there is no memory.
template <class M>
concept Memory = requires(void* block, std::size_t size_bytes, const char* name) {
    { M::allocate(size_bytes) } -> std::same_as<void*>;
    { M::allocate_aligned(std::size_t{64}, size_bytes) } -> std::same_as<void*>;
    { M::deallocate(block) };
    { M::root(name, size_bytes) } -> std::same_as<void*>;
    { M::settle() };
};

[[noreturn]] void out_of_memory();

#ifdef BENCH_PLAIN

/// The program as it would be without Stillpoint: compiled without its headers, linked without its library.
struct PlainMemory {
    static void* allocate(std::size_t size_bytes)
    {
        void* block = std::malloc(size_bytes);
        return block != nullptr ? block : (out_of_memory(), nullptr);
    }
    static void* allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes)
    {
        void* block = std::aligned_alloc(alignment_bytes, (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes);
        return block != nullptr ? block : (out_of_memory(), nullptr);
    }
    static void deallocate(void* block) { std::free(block); }
    static void* root(const char*, std::size_t size_bytes)
    {
        static void* object = nullptr;
        if (object == nullptr) {
            object = allocate_aligned(64, size_bytes);
            std::memset(object, 0, size_bytes);
        }
        return object;
    }
    static void settle() {}
};

using BenchMemory = PlainMemory;

#else

}  // namespace bench
#include "stillpoint/stillpoint.h"
namespace bench {

/// Durable where STILLPOINT_POOL names a pool; without one, ordinary memory behind the intercepted functions.
struct StillpointMemory {
    static void* allocate(std::size_t size_bytes)
    {
        void* block = sp_malloc(size_bytes);
        return block != nullptr ? block : (out_of_memory(), nullptr);
    }
    static void* allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes)
    {
        void* block = sp_aligned_alloc(alignment_bytes, size_bytes);
        return block != nullptr ? block : (out_of_memory(), nullptr);
    }
    static void deallocate(void* block) { sp_free(block); }
    static void* root(const char* name, std::size_t size_bytes)
    {
        void* object = sp_root(name, size_bytes);
        return object != nullptr ? object : (out_of_memory(), nullptr);
    }
    /// Waits until everything written so far is durable, so that the work of one slice is not done in another's.
    static void settle() { (void)sp_wait_durable(sp_epoch(), 10'000); }
};

using BenchMemory = StillpointMemory;

#endif

static_assert(Memory<BenchMemory>);

}  // namespace bench
