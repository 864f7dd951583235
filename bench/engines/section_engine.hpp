#pragma once
// Engines of this library whose operations locks delimit, for the bench: blocks, roots, checkpoints, statistics. Durable where
// STILLPOINT_POOL names a pool; without one, ordinary memory with intercepted functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "../harness/ending.hpp"
#include "engine.hpp"
#include "locked_sections.hpp"
#include "stillpoint/stillpoint.h"
#include "untyped_memory.hpp"

namespace bench {

template <class Engine, StoresSeen seen>
struct SectionEngine : LockedSections<>, UntypedMemory<Engine> {
    static constexpr StoresSeen stores_seen = seen;

    static void* allocate(std::size_t size_bytes) { return checked(sp_malloc(size_bytes)); }
    static void* allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes)
    {
        return checked(sp_aligned_alloc(alignment_bytes, size_bytes));
    }
    static void deallocate(void* block) { sp_free(block); }
    static void* root(const char* name, std::size_t size_bytes) { return checked(sp_root(name, size_bytes)); }
    static void settle() noexcept { (void)sp_checkpoint(); }

    /// A statistic of the runtime (docs/guide/statistics.md); none without a pool.
    static std::optional<std::uint64_t> statistic(std::string_view name)
    {
        std::uint64_t value = 0;
        return sp_statistic(std::string(name).c_str(), &value) == SP_OK ? std::optional(value) : std::nullopt;
    }

private:
    static void* checked(void* block) { return block != nullptr ? block : (out_of_memory(sp_last_error()), nullptr); }
};

}  // namespace bench
