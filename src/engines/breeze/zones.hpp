#pragma once
// The allocator [Breeze, thesis §3.2.2]: which blocks are free is known in memory only, and found at opening by a scan of the blocks'
// headers. Blocks of one zone have one size. Each log has a cache of free blocks, used by the transaction that has the log.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "engines/breeze/pool_memory.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::breeze {

/// Sizes of small blocks, with the header, in granules. 17, 33 and 65 hold objects of 1, 2 and 4 KiB.
inline constexpr std::array<std::uint16_t, 48> block_sizes = {
    1,  2,  3,  4,  5,  6,  7,  8,  9,  10,  11,  12,  13,  14,  16,  17,  18,  20,  22,  24,  26,  28,   32,   33,
    36, 40, 44, 48, 56, 64, 65, 74, 85, 102, 120, 128, 136, 170, 204, 256, 292, 341, 409, 512, 682, 1024, 1365, 2048};
static_assert(block_sizes.back() == small_granules_max);

/// The first size that holds so many granules, at most small_granules_max.
[[nodiscard]] std::size_t size_class_of(std::uint64_t granules) noexcept;

/// The size of a block for an object of that size.
constexpr std::uint64_t granules_for(std::uint64_t object_bytes) noexcept
{
    return (object_bytes + object_header_bytes + granule_bytes - 1) / granule_bytes;
}
/// The zones that a large block takes.
constexpr std::uint64_t zones_for(std::uint64_t granules) noexcept { return (granules + zone_granules - 1) / zone_granules; }

/// Free blocks of one log: used by one transaction at a time.
class BlockCache {
public:
    static constexpr std::size_t blocks_max = 32;
    std::array<std::array<std::uint64_t, blocks_max>, block_sizes.size()> blocks;
    std::array<std::uint32_t, block_sizes.size()> counts;  ///< zero at first
};

class Zones {
public:
    enum class Kind : std::uint8_t { blank, small, large, rest };
    struct Zone {
        Kind kind;
        std::uint64_t value;  ///< small: granules of a block; large: of the block that begins here; rest: number of its first zone
    };

    /// Errors: no_memory.
    [[nodiscard]] Result<void> prepare(PoolMemory& memory, const Geometry& geometry, std::uint64_t key);

    [[nodiscard]] std::uint64_t count() const noexcept { return geometry_.zone_count; }
    [[nodiscard]] std::uint64_t offset_of(std::uint64_t zone) const noexcept { return geometry_.zones_offset + zone * zone_bytes; }
    [[nodiscard]] Zone zone(std::uint64_t number) const noexcept;
    /// The offset of the header of the block that has the byte, free or not; 0: no block has it. Any thread.
    [[nodiscard]] std::uint64_t block_of(std::uint64_t offset) const noexcept;
    /// Calls visit(offset) for each block that begins in the zone, free or not.
    template <class Visit>
    void visit_blocks(std::uint64_t number, Visit&& visit) const
    {
        const Zone found = zone(number);
        const std::uint64_t blocks = found.kind == Kind::small ? zone_granules / found.value : found.kind == Kind::large ? 1 : 0;
        for (std::uint64_t i = 0; i < blocks; ++i) {
            visit(offset_of(number) + i * found.value * granule_bytes);
        }
    }
    /// The bytes of the block that begins there, header included.
    [[nodiscard]] std::uint64_t bytes_of_block(std::uint64_t offset) const noexcept;

    /// A free block for an object of that size; 0: there is none. Its head is durable as that of a free one, so a caller need only write
    /// the header. `is_large`: the header must be durable before the object's bytes are stored.
    [[nodiscard]] std::uint64_t allocate(BlockCache& cache, std::uint64_t object_bytes, bool& is_large) noexcept;
    /// The block is free, durably. Any thread.
    void release(std::uint64_t offset) noexcept;
    [[nodiscard]] std::uint64_t bytes_in_use() const noexcept { return bytes_in_use_.load(std::memory_order_relaxed); }

    /// Checked form: the bytes of a freed object are overwritten, and its block is used again only when others do not suffice, or
    /// `bytes` of blocks have been freed after it. Before the first release(). Errors: no_memory.
    [[nodiscard]] Result<void> keep_freed(std::uint64_t bytes);
    /// Each byte of a freed object in the checked form. A pointer of such bytes leads to no memory.
    static constexpr std::byte freed_byte{0xdf};

    /// Blocks in use; those in caches are not.
    [[nodiscard]] std::uint64_t objects() const noexcept { return blocks_in_use_.load(std::memory_order_relaxed); }

    // The scan, zone by zone; several threads take different zones.
    void set_zone(std::uint64_t number, Zone zone) noexcept;
    /// Bits of the zone's blocks: 1 is free.
    [[nodiscard]] std::uint64_t* free_bits(std::uint64_t zone) noexcept { return &bits_[zone * words_of_zone]; }
    static constexpr std::uint64_t words_of_zone = zone_granules / 64;
    /// After the scan: makes lists of what is free.
    void finish_scan() noexcept;
    /// Makes the zones of a free large block blank, durably. Also for one that a crash left half way.
    void clear_large(std::uint64_t first_zone, std::uint64_t zones) noexcept;

private:
    void list(std::uint64_t zone, std::uint64_t granules) noexcept;
    void unlist(std::uint64_t zone, std::uint64_t granules) noexcept;
    [[nodiscard]] std::uint64_t take(BlockCache& cache, std::uint64_t object_bytes, bool& is_large) noexcept;
    // With lock_ held.
    void make_usable(std::uint64_t offset) noexcept;
    /// Overwrites the block's object, and makes the oldest blocks usable that are more than are to be kept.
    void keep(std::uint64_t offset) noexcept;
    /// False: none was kept.
    bool make_oldest_usable() noexcept;
    [[nodiscard]] bool refill(BlockCache& cache, std::size_t size_class) noexcept;
    [[nodiscard]] std::uint64_t take_blank(std::uint64_t zones) noexcept;
    void carve(std::uint64_t zone, std::uint64_t granules) noexcept;
    void make_blank(std::uint64_t zone) noexcept;

    static constexpr std::uint64_t none = UINT64_MAX;
    PoolMemory* memory_ = nullptr;
    Geometry geometry_{};
    std::uint64_t key_ = 0;
    os::FutexLock lock_;
    std::uint64_t keeps_bytes_ = 0;  ///< 0: freed blocks are usable at once
    std::uint64_t kept_bytes_ = 0;
    os::ReservedArray<std::uint64_t> kept_;  ///< a ring
    std::uint64_t kept_begin_ = 0;
    std::uint64_t kept_count_ = 0;
    os::ReservedArray<std::atomic<std::uint64_t>> zones_;
    os::ReservedArray<std::uint64_t> bits_;
    os::ReservedArray<std::uint32_t> free_counts_;
    /// In a zone that was never used before: the byte from which on its memory was not asked for yet. 0: all was, or it is not known.
    os::ReservedArray<std::uint32_t> unasked_from_;
    /// The zones of each size that have free blocks outside of caches: numbers + 1, 0: none.
    std::array<std::uint32_t, block_sizes.size()> with_free_{};
    struct Link {
        std::uint32_t next;
        std::uint32_t previous;
    };
    os::ReservedArray<Link> links_;
    std::uint64_t next_blank_ = 0;
    std::atomic<std::uint64_t> bytes_in_use_{0};
    std::atomic<std::uint64_t> blocks_in_use_{0};
};

}  // namespace stillpoint::breeze
