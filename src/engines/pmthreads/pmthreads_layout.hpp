#pragma once
// What pmthreads keeps in a pool file. Structures and constants only; docs/format/pmthreads.md
// explains them with a byte example.
//
//   engine area (4 pages):  commit record, even epochs, copy 0 | copy 1 | odd epochs, copy 0 | copy 1
//   segment:                version table of its image pages | data pages, two for each image page
//
// Source: [PMThreads §4.2], Algorithm 2: a VersionSlot is the local version number (seq) of one
// persistent copy, the commit record holds VER_d. Beyond it: a slot carries a location, so that
// the working copies of one epoch can lie next to each other, and checksums.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"

namespace stillpoint::pmthreads {

inline constexpr std::uint32_t layout_version = 1;
inline constexpr std::uint64_t commit_magic = 0x31544d4d43505453;  // "STPCMMT1"
inline constexpr std::uint64_t engine_area_pages = 4;
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

enum CommitFlags : std::uint32_t {
    commit_clean = 1,  ///< the last checkpoint of a run that ended normally
};

/// VER_d. A record is written twice, in neighbouring pages, and epochs alternate between two such
/// pairs: a torn write of one epoch's pair leaves the pair of the epoch before it, and one
/// damaged page is repaired from its twin.
struct CommitRecord {
    std::uint64_t magic;
    std::array<std::uint8_t, 16> pool_uuid;
    std::uint64_t epoch;             ///< every slot with an epoch up to this one is committed
    std::uint64_t generation;        ///< of the pool, when this was written
    std::uint64_t table_digest;      ///< over all consistent copies; see VersionTable::digest()
    std::uint64_t image_pages;       ///< size of the image at the capture
    std::uint64_t pages_in_epoch;
    std::uint64_t captured_unix_ns;  ///< wall clock at the capture: the age of lost work
    std::uint32_t flags;
    std::uint32_t parity;            ///< pair it was written to
    std::uint64_t checksum;          ///< over all bytes before
};
static_assert(sizeof(CommitRecord) == 88);
static_assert(offsetof(CommitRecord, epoch) == 24 && offsetof(CommitRecord, checksum) == 80);

constexpr std::uint64_t table_pages_for(std::uint64_t image_pages) noexcept
{
    return (image_pages + entries_per_table_page - 1) / entries_per_table_page;
}

/// EngineFormat::segment_file_pages.
constexpr std::uint64_t segment_file_pages(std::uint64_t image_pages) noexcept
{
    return table_pages_for(image_pages) + data_pages_per_image_page * image_pages;
}

}  // namespace stillpoint::pmthreads
