#pragma once
// Bytes of an increment: structures and constants only. docs/internals/format/increment.md describes them.
//
//   header (1 page) | runs of changed pages | runs of cleared pages | runs of pages with digests | digests | zeroes up to a page |
//   the changed pages

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"

namespace stillpoint::layout {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

inline constexpr std::uint8_t increment_magic[8] = {0x93, 'S', 'T', 'I', 'N', 'C', '\r', '\n'};
/// The first bytes of one that is being written.
inline constexpr std::uint8_t unfinished_increment_magic[8] = {0x93, 'S', 'T', 'I', 'N', 'N', '\r', '\n'};
inline constexpr std::uint32_t increment_version = 1;
inline constexpr std::uint64_t increment_checksum_seed = 0x5354494e43524d54;
/// With the pool's identity, the seed of its pages' digests.
inline constexpr std::uint64_t increment_digest_seed = 0x5354494e43444947;

/// A state of the pool's file.
struct FileState {
    std::uint64_t epoch;       ///< the newest durable one; 0: none
    std::uint64_t generation;  ///< of the pool
    std::uint64_t file_bytes;  ///< a multiple of the page size
    std::uint64_t digest;      ///< PageDigests::of_all()
};
static_assert(sizeof(FileState) == 32);

struct PageRun {
    std::uint64_t first;
    std::uint64_t count;
};
static_assert(sizeof(PageRun) == 16);

struct IncrementHeader {
    std::uint8_t magic[8];
    std::uint32_t version;
    std::uint32_t header_bytes;  ///< 4096
    std::uint64_t checksum;      ///< of bytes 0 to 15 and 24 to 4095
    std::uint8_t pool_uuid[16];
    char engine_name[16];        ///< the rest zero
    std::uint32_t engine_layout_version;
    std::uint32_t page_bytes;    ///< 4096
    FileState base;              ///< what it is to be added to
    FileState own;               ///< what it makes of that
    std::uint64_t created_unix_seconds;  ///< wall clock, for people
    std::uint64_t changed_runs;
    std::uint64_t changed_pages;
    std::uint64_t cleared_runs;
    std::uint64_t cleared_pages;  ///< that are zero and were not
    std::uint64_t digest_runs;
    std::uint64_t digests;
    std::uint64_t index_checksum;   ///< of all bytes between the header and the first changed page
    std::uint64_t increment_bytes;  ///< the whole file
    std::uint8_t reserved[3896];    ///< zero
};
static_assert(std::is_trivially_copyable_v<IncrementHeader>);
static_assert(sizeof(IncrementHeader) == page_bytes);
static_assert(offsetof(IncrementHeader, checksum) == 16);
static_assert(offsetof(IncrementHeader, pool_uuid) == 24);
static_assert(offsetof(IncrementHeader, engine_name) == 40);
static_assert(offsetof(IncrementHeader, base) == 64);
static_assert(offsetof(IncrementHeader, own) == 96);
static_assert(offsetof(IncrementHeader, created_unix_seconds) == 128);
static_assert(offsetof(IncrementHeader, index_checksum) == 184);
static_assert(offsetof(IncrementHeader, reserved) == 200);

}  // namespace stillpoint::layout
