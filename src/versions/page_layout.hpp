#pragma once
// What an engine of page versions keeps in a segment of the pool file. Structures and constants only; docs/format/pmthreads.md
// explains them with a byte example.
//
//   segment:  version table of its image pages | data pages, two for each image page | a part of the engine's own, if it has one
//
// Source: [PMThreads §4.2], Algorithm 2: a VersionSlot is the local version number (seq) of one
// persistent copy, the commit record holds VER_d. Beyond it: a slot carries a location, so that
// the working copies of one epoch can lie next to each other, and checksums.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"
#include "pool/pool.hpp"

namespace stillpoint::versions {

inline constexpr std::uint64_t data_pages_per_image_page = 2;

/// One durable copy of a page. All zero: there is none, and as a consistent copy that means a
/// page of zeroes. It tears harmlessly: a slot is looked at only if its epoch was committed.
struct VersionSlot {
    std::uint64_t epoch;     ///< seq of the paper: the epoch that wrote this copy
    std::uint32_t location;  ///< file page that holds the copy
    std::uint32_t checksum;  ///< of its 4096 bytes, image page and epoch
};
static_assert(sizeof(VersionSlot) == 16 && std::is_trivially_copyable_v<VersionSlot>);
static_assert(offsetof(VersionSlot, location) == 8 && offsetof(VersionSlot, checksum) == 12);

/// The two copies of one image page. The one with the larger committed epoch is the consistent
/// copy, the other the working copy.
struct VersionEntry {
    std::array<VersionSlot, 2> slots;
};
static_assert(sizeof(VersionEntry) == 32);
inline constexpr std::uint64_t entries_per_table_page = page_bytes / sizeof(VersionEntry);

constexpr std::uint64_t table_pages_for(std::uint64_t image_pages) noexcept
{
    return (image_pages + entries_per_table_page - 1) / entries_per_table_page;
}

/// The segment's data pages begin behind its table.
constexpr std::uint64_t first_data_page(const Segment& segment) noexcept
{
    return segment.first_file_page + table_pages_for(segment.image_pages);
}

/// What table and copies take of a segment: EngineFormat::segment_file_pages of an engine without a part of its own.
constexpr std::uint64_t segment_file_pages(std::uint64_t image_pages) noexcept
{
    return table_pages_for(image_pages) + data_pages_per_image_page * image_pages;
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
    // Each further segment may round its table up by a page.
    return file_pages + segment_file_pages(image_pages_max) + image_pages_max + segments_max * (engine_part_pages_max(0) + 1);
}

}  // namespace stillpoint::versions
