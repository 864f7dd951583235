#pragma once
// The bytes of the delta log: lines of pages that changed, by epoch, beside the pages' copies. Structures and constants only;
// docs/internals/format explains them.
//
//   part of a segment:  delta pages, delta_pages_for() the image pages of the segment; those of the first segment begin with heads
//   heads:              place A, copy 0 | copy 1 | place B, copy 0 | copy 1
//   batch:              index pages (head, masks, image pages, checksums of blocks) | lines, 64 bytes each
//
// The delta pages of all segments are one row of numbered pages, the heads left out; a batch has neighbours in it. A page of the image is
// its consistent copy with the lines of each live batch of a later epoch laid over it, in the order of the epochs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"
#include "pool/pool.hpp"
#include "versions/page_layout.hpp"

namespace stillpoint::versions {

inline constexpr std::uint64_t delta_pages_min = 64;
inline constexpr std::uint64_t delta_head_pages = table_places * table_copies;
inline constexpr std::uint64_t lines_per_page = page_bytes / cache_line_bytes;
/// A page of which more lines changed in an epoch is written whole, and likely to be so in the next ones: to take its lines apart first
/// would be work for nothing.
inline constexpr int delta_lines_of_page_max = 16;
inline constexpr std::uint64_t delta_block_bytes = 64 * kib;  ///< of lines under one checksum

/// Half as many as the image's; less in a small segment, which holds little data: most of a small first one are tables of the heap.
constexpr std::uint64_t delta_pages_for(std::uint64_t image_pages) noexcept
{
    constexpr std::uint64_t image_pages_of_small = 4096;
    constexpr std::uint64_t of_small_max = 384;
    return image_pages > image_pages_of_small ? image_pages / 2 : std::clamp(image_pages / 2, delta_pages_min, of_small_max);
}
static_assert(delta_pages_for(1) <= engine_part_pages_max(1));

/// EngineFormat::segment_file_pages of an engine with a delta log.
constexpr std::uint64_t segment_file_pages_with_deltas(std::uint64_t image_pages) noexcept
{
    return segment_file_pages(image_pages) + delta_pages_for(image_pages);
}

constexpr std::uint64_t first_delta_page(const Segment& segment) noexcept
{
    return segment.first_file_page + segment_file_pages(segment.image_pages);
}

/// Which batches are live. Written where a batch comes or goes, twice, to the place that is not in force.
struct DeltaHead {
    std::uint64_t checksum;  ///< of the bytes after it
    std::uint64_t epoch;  ///< the epoch that wrote it
    std::uint64_t batches;  ///< live ones; 0: the other fields say nothing
    std::uint64_t digest;  ///< sum over the live batches: what the commit record's digest has beside the table's
    std::uint64_t newest_epoch;
    std::uint32_t newest_page;
    std::uint32_t newest_index_pages;
    std::uint64_t reserved[2];
};
static_assert(sizeof(DeltaHead) == cache_line_bytes && std::is_trivially_copyable_v<DeltaHead>);

/// The begin of a batch's index. After it: masks (8 bytes for each group, a bit for each line of the page, lowest first), image pages (4
/// bytes for each, filled up to 8), checksums (8 bytes for each block of lines). The lines lie in the order of the groups and bits.
struct DeltaBatchHead {
    std::uint64_t checksum;  ///< of the index after it
    std::uint64_t epoch;
    std::uint64_t previous_epoch;  ///< of the batch before; 0: there was none when this one was written
    std::uint32_t previous_page;
    std::uint32_t previous_index_pages;
    std::uint32_t page;  ///< its first page in the row
    std::uint32_t pages;
    std::uint32_t groups;
    std::uint32_t lines;
    std::uint64_t reserved[2];
};
static_assert(sizeof(DeltaBatchHead) == cache_line_bytes && std::is_trivially_copyable_v<DeltaBatchHead>);

constexpr std::uint64_t delta_blocks_for(std::uint64_t lines) noexcept
{
    return (lines * cache_line_bytes + delta_block_bytes - 1) / delta_block_bytes;
}
constexpr std::uint64_t delta_index_bytes(std::uint64_t groups, std::uint64_t lines) noexcept
{
    return sizeof(DeltaBatchHead) + groups * sizeof(std::uint64_t) + round_up(groups * sizeof(std::uint32_t), sizeof(std::uint64_t)) +
           delta_blocks_for(lines) * sizeof(std::uint64_t);
}
constexpr std::uint64_t delta_index_pages(std::uint64_t groups, std::uint64_t lines) noexcept
{
    return round_up(delta_index_bytes(groups, lines), page_bytes) / page_bytes;
}
constexpr std::uint64_t delta_batch_pages(std::uint64_t groups, std::uint64_t lines) noexcept
{
    return delta_index_pages(groups, lines) + round_up(lines * cache_line_bytes, page_bytes) / page_bytes;
}

}  // namespace stillpoint::versions
