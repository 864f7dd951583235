#pragma once
// Bytes of a superblock: structures and constants only. docs/internals/format/pool.md is the description
// for people, with a hex example; superblock.hpp has the code that reads and writes these bytes.
//
// All integers are little-endian. A file holds two copies, in its pages 0 and 1.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"

namespace stillpoint::layout {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

/// The first byte is not text, so that a text file is never taken for a pool; CR LF at the end
/// shows a transfer that rewrote line ends.
inline constexpr std::uint8_t superblock_magic[8] = {0x93, 'S', 'T', 'P', 'O', 'O', '\r', '\n'};
/// Page 0 of a file whose creation has begun and is not finished.
inline constexpr std::uint8_t unfinished_magic[8] = {0x93, 'S', 'T', 'N', 'E', 'W', '\r', '\n'};

inline constexpr std::uint32_t pool_format_version = 1;
inline constexpr std::uint32_t pool_format_version_oldest = 1;

/// Seed of the superblock's checksum, so that no other checksummed block passes for one.
inline constexpr std::uint64_t superblock_checksum_seed = 0x5354504f4f4c5342;

inline constexpr std::uint64_t superblock_copies = 2;
inline constexpr std::size_t superblock_segments_max = 64;

/// Feature bits 0 to 31: a library that does not know one of them must refuse the pool.
inline constexpr std::uint64_t features_incompatible_mask = 0x0000'0000'ffff'ffff;
/// Feature bits 32 to 63: may be ignored, and are kept when the superblock is rewritten.
inline constexpr std::uint64_t features_compatible_mask = 0xffff'ffff'0000'0000;
/// The maximum was raised: image_bytes_first_max is not zero, and the image may have its heap's tables elsewhere.
inline constexpr std::uint64_t feature_raised_maximum = 1;
/// The features that this library knows.
inline constexpr std::uint64_t features_known = feature_raised_maximum;

/// The base address is a multiple of this, so that huge pages can back the image.
inline constexpr std::uint64_t base_address_alignment = 2 * mib;

/// The image's own tables and a first heap span always fit.
inline constexpr std::uint64_t image_bytes_min = 4 * mib;

/// A run of image pages and the part of the file that keeps them; all in pages.
struct SegmentRecord {
    std::uint64_t first_image_page;
    std::uint64_t image_pages;
    std::uint64_t first_file_page;
    std::uint64_t file_pages;
};
static_assert(sizeof(SegmentRecord) == 32);
static_assert(offsetof(SegmentRecord, first_image_page) == 0);
static_assert(offsetof(SegmentRecord, image_pages) == 8);
static_assert(offsetof(SegmentRecord, first_file_page) == 16);
static_assert(offsetof(SegmentRecord, file_pages) == 24);

struct Superblock {
    // The first 32 bytes, and how the checksum is made, are the same in every format version:
    // a newer pool is told from a damaged one.
    std::uint8_t magic[8];
    std::uint32_t format_version;
    std::uint32_t superblock_bytes;       ///< 4096
    std::uint64_t checksum;               ///< of all bytes, this field taken as 0
    std::uint64_t sequence;               ///< of two good copies the larger is in force; from 1

    std::uint8_t uuid[16];                ///< RFC 4122 version 4, drawn at creation
    char engine_name[16];                 ///< NUL-terminated, rest zero
    std::uint32_t engine_layout_version;  ///< the engine's own numbering
    std::uint32_t page_bytes;             ///< 4096
    std::uint64_t feature_bits;
    std::uint64_t base_address;           ///< where the image is mapped
    std::uint64_t image_bytes;            ///< sum over the segments
    std::uint64_t image_bytes_max;
    std::uint64_t generation;             ///< writable opens, creation included
    std::uint64_t file_bytes;             ///< end of the last segment; the file may be longer
    std::uint64_t engine_area_first_page;
    std::uint64_t engine_area_pages;
    std::uint64_t created_unix_seconds;
    std::uint32_t durability;             ///< 0 process, 1 power
    std::uint32_t segment_count;
    std::uint64_t image_bytes_first_max;  ///< with feature_raised_maximum: the maximum at creation; else 0
    std::uint8_t reserved[1888];          ///< zero, unless an unknown compatible feature is on
    SegmentRecord segments[superblock_segments_max];  ///< unused ones are zero
};
static_assert(std::is_trivially_copyable_v<Superblock> && std::is_standard_layout_v<Superblock>);
static_assert(sizeof(Superblock) == stillpoint::page_bytes);
static_assert(offsetof(Superblock, magic) == 0);
static_assert(offsetof(Superblock, format_version) == 8);
static_assert(offsetof(Superblock, superblock_bytes) == 12);
static_assert(offsetof(Superblock, checksum) == 16);
static_assert(offsetof(Superblock, sequence) == 24);
static_assert(offsetof(Superblock, uuid) == 32);
static_assert(offsetof(Superblock, engine_name) == 48);
static_assert(offsetof(Superblock, engine_layout_version) == 64);
static_assert(offsetof(Superblock, page_bytes) == 68);
static_assert(offsetof(Superblock, feature_bits) == 72);
static_assert(offsetof(Superblock, base_address) == 80);
static_assert(offsetof(Superblock, image_bytes) == 88);
static_assert(offsetof(Superblock, image_bytes_max) == 96);
static_assert(offsetof(Superblock, generation) == 104);
static_assert(offsetof(Superblock, file_bytes) == 112);
static_assert(offsetof(Superblock, engine_area_first_page) == 120);
static_assert(offsetof(Superblock, engine_area_pages) == 128);
static_assert(offsetof(Superblock, created_unix_seconds) == 136);
static_assert(offsetof(Superblock, durability) == 144);
static_assert(offsetof(Superblock, segment_count) == 148);
static_assert(offsetof(Superblock, image_bytes_first_max) == 152);
static_assert(offsetof(Superblock, reserved) == 160);
static_assert(offsetof(Superblock, segments) == 2048);

/// Page 0 while a pool is being created. It fits in one 512-byte sector, so it cannot tear.
struct UnfinishedMarker {
    std::uint8_t magic[8];
    std::uint32_t format_version;
    std::uint32_t zero;
};
static_assert(sizeof(UnfinishedMarker) == 16);
static_assert(offsetof(UnfinishedMarker, magic) == 0);
static_assert(offsetof(UnfinishedMarker, format_version) == 8);
static_assert(offsetof(UnfinishedMarker, zero) == 12);

}  // namespace stillpoint::layout
