#pragma once
// The baseline: the program as it would be without Stillpoint, compiled without its headers, linked without its library.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "../harness/ending.hpp"
#include "engine.hpp"
#include "locked_sections.hpp"
#include "untyped_memory.hpp"
#include "word_locks.hpp"

namespace bench {

#if defined(BENCH_WORD_LOCKS)
using VolatileLocks = WordLocks;
#else
using VolatileLocks = PthreadLocks;
#endif

struct VolatileEngine : LockedSections<VolatileLocks>, UntypedMemory<VolatileEngine> {
    static constexpr StoresSeen stores_seen = StoresSeen::all;

    static void* allocate(std::size_t size_bytes) { return checked(std::malloc(size_bytes)); }
    static void* allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes)
    {
        return checked(std::aligned_alloc(alignment_bytes, (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes));
    }
    static void deallocate(void* block) { std::free(block); }
    static void* root(const char* name, std::size_t size_bytes)
    {
        static auto& roots = *new std::map<std::string, void*>;  // never destroyed: at the end everything is reachable
        void*& object = roots[name];
        if (object == nullptr) {
            object = allocate_aligned(64, size_bytes);
            std::memset(object, 0, size_bytes);
        }
        return object;
    }
    static void settle() noexcept {}

    static std::optional<std::uint64_t> statistic(std::string_view) noexcept { return std::nullopt; }

private:
    static void* checked(void* block) { return block != nullptr ? block : (out_of_memory(), nullptr); }
};
static_assert(MemoryEngine<VolatileEngine>);

}  // namespace bench
