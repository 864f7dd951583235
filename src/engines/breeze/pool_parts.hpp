#pragma once
// The parts of an open pool, and what they share.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/findings.hpp"
#include "engines/breeze/activation_log.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "engines/breeze/marks.hpp"
#include "engines/breeze/object_headers.hpp"
#include "engines/breeze/pool_memory.hpp"
#include "engines/breeze/reference_counts.hpp"
#include "engines/breeze/types.hpp"
#include "engines/breeze/zones.hpp"
#include "os/futex.hpp"

namespace stillpoint::breeze {

struct PoolParts {
    PoolMemory memory;
    Geometry geometry{};
    std::uint64_t key = 0;
    PoolTypes types;
    Zones zones;
    std::array<ActivationLog, logs_max> activations;
    ReferenceCounts counts;
    Marks marks;
    std::uint64_t generation = 0;  ///< of every object while the pool is in use
    os::FutexLock versions_lock;
    std::atomic<std::uint64_t> next_version{1};
    std::atomic<std::uint64_t> versions_end{0};  ///< those below are reserved durably
    std::uint64_t damaged_objects = 0;
    bool is_salvaged = false;  ///< a salvage opens it: nothing is freed, and damage that other parts do not depend on is passed over
    bool was_closed = false;   ///< in an orderly way, the last time: no transaction was unfinished, and all counts were applied
    Findings* findings = nullptr;  ///< gets them; nullptr: they are logged

    [[nodiscard]] std::uintptr_t base() const noexcept { return reinterpret_cast<std::uintptr_t>(memory.base()); }
    /// The block that a pointer leads into; 0: none of this pool.
    [[nodiscard]] std::uint64_t target_of(std::uint64_t pointer) const noexcept
    {
        return memory.contains(pointer) ? zones.block_of(pointer - base()) : 0;
    }
    [[nodiscard]] bool allocated(std::uint64_t block) const noexcept { return is_allocated(memory, key, block); }
    /// The type of an allocated object; nullptr: its header is damaged.
    [[nodiscard]] const Type* type_of(std::uint64_t block) const noexcept
    {
        const ObjectHeader& header = memory.object(block);
        return is_sound(key, block, zones.bytes_of_block(block) / granule_bytes, header) ? types.find(type_in(load_word(header.counts)))
                                                                                         : nullptr;
    }
    [[nodiscard]] std::byte* bytes_of(std::uint64_t block) const noexcept { return &memory.at<std::byte>(block + object_header_bytes); }
};

}  // namespace stillpoint::breeze
