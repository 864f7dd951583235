#pragma once
// The bytes that respct keeps in a pool file. Structures and constants only; docs/internals/format/respct.md explains them.
//
//   engine area (4 pages):  commit records (pool/commit_layout.hpp)
//   segment:                the image's pages, one for one; the first begins at a multiple of 2 MiB
//
// The image lies in the file as it lies in memory [ResPCT §3.1], except for its own tables in front of the heap
// (ImageGeometry::table_pages): of each of these pages there are two copies, written in turn. Copy 0 is the page's own place, copy 1
// lies at copies_offset, and a CopyRecord at copy_records_offset says what they hold.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"
#include "pool/commit_layout.hpp"

namespace stillpoint::respct {

inline constexpr std::uint32_t layout_version = 1;

/// Image and file are congruent by this, so that the mapped image can lie in the CPU's huge pages.
inline constexpr std::uint64_t huge_page_bytes = 2 * mib;

/// All zero: there is no copy, and the page is one of zeroes. It tears harmlessly: the copy that is being written is not the newest
/// committed one, and one whose epoch was not committed is not examined.
struct CopyRecord {
    std::array<std::uint64_t, 2> epoch;     ///< that wrote the copy
    std::array<std::uint64_t, 2> checksum;  ///< of its 4096 bytes, page number and epoch
    std::array<std::uint64_t, 4> reserved;  ///< zero
};
static_assert(sizeof(CopyRecord) == cache_line_bytes && std::is_trivially_copyable_v<CopyRecord>);

/// EngineFormat::segment_file_pages.
constexpr std::uint64_t segment_file_pages(std::uint64_t image_pages) noexcept { return image_pages; }

}  // namespace stillpoint::respct
