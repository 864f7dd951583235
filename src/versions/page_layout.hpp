#pragma once
// The bytes that an engine of page versions keeps in a segment of the pool file. Structures and constants only; docs/internals/format
// explains them with a byte example.
//
//   segment:  version table of its image pages | data pages, two for each image page | a part of the engine's own, if it has one
//   table:    place A of each table page, twice | place B of each, twice
//
// Source: [PMThreads §4.2], Algorithm 2: a VersionSlot is the local version number (seq) of one persistent copy, the commit record
// holds VER_d. Beyond it: a slot carries a location, so that the working copies of one epoch can lie next to each other, and
// checksums; and not the slots of one page switch roles but the two places of a table page, so that a write never touches a sector
// that holds what is in force.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"
#include "pool/pool.hpp"

namespace stillpoint::versions {

inline constexpr std::uint64_t data_pages_per_image_page = 2;

/// The consistent copy of one image page, as of a table page's epoch. All zero: there is none, and the page is one of zeroes.
struct VersionSlot {
    std::uint64_t epoch;     ///< seq of the paper: the epoch that wrote this copy
    std::uint32_t location;  ///< file page that holds the copy
    std::uint32_t checksum;  ///< of its 4096 bytes, image page and epoch
};
static_assert(sizeof(VersionSlot) == 16 && std::is_trivially_copyable_v<VersionSlot>);
static_assert(offsetof(VersionSlot, location) == 8 && offsetof(VersionSlot, checksum) == 12);

inline constexpr std::uint64_t slots_per_table_page = 255;

/// One page of the table, as it lies in each of its places. All zero: it was never written there.
struct TablePage {
    std::uint64_t checksum;  ///< of the bytes after it
    std::uint64_t epoch;     ///< the epoch that wrote it
    std::array<VersionSlot, slots_per_table_page> slots;
};
static_assert(sizeof(TablePage) == page_bytes && std::is_trivially_copyable_v<TablePage>);
static_assert(offsetof(TablePage, epoch) == 8 && offsetof(TablePage, slots) == 16);

/// An epoch writes to the place that is not in force.
inline constexpr std::uint64_t table_places = 2;
/// Both are written by one epoch, with the same bytes: a sector that cannot be read takes one of them.
inline constexpr std::uint64_t table_copies = 2;

constexpr std::uint64_t table_pages_for(std::uint64_t image_pages) noexcept
{
    return (image_pages + slots_per_table_page - 1) / slots_per_table_page;
}

constexpr std::uint64_t table_file_pages(std::uint64_t image_pages) noexcept
{
    return table_places * table_copies * table_pages_for(image_pages);
}

/// Where the segment's table page number `index` lies: the first of its two copies in `place`. The other one follows it.
constexpr std::uint64_t table_file_page(const Segment& segment, std::uint64_t index, std::uint64_t place) noexcept
{
    return segment.first_file_page + table_copies * (place * table_pages_for(segment.image_pages) + index);
}

/// The segment's data pages begin where its table ends.
constexpr std::uint64_t first_data_page(const Segment& segment) noexcept
{
    return segment.first_file_page + table_file_pages(segment.image_pages);
}

/// The pages of a segment for table and copies: EngineFormat::segment_file_pages of an engine without a part of its own.
constexpr std::uint64_t segment_file_pages(std::uint64_t image_pages) noexcept
{
    return table_file_pages(image_pages) + data_pages_per_image_page * image_pages;
}

/// A part of the engine's own is not larger than this, so that tables by file page know their size.
constexpr std::uint64_t engine_part_pages_max(std::uint64_t image_pages) noexcept
{
    constexpr std::uint64_t of_small_segment = 1024;
    return image_pages + of_small_segment;
}

/// One past the last file page that a pool can ever have that is now `file_pages` long.
constexpr std::uint64_t file_pages_max(std::uint64_t file_pages, std::uint64_t image_pages_max, std::uint64_t segments_max) noexcept
{
    // Each further segment may round its table up.
    return file_pages + segment_file_pages(image_pages_max) + image_pages_max +
           segments_max * (engine_part_pages_max(0) + table_file_pages(1));
}

}  // namespace stillpoint::versions
