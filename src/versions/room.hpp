#pragma once
// Room in the file system for copies that may never be needed.
//
// Most of a new image are tables of the directory and of the heap, as long as the largest image needs them. So a new file takes no room for
// the copies of most of their pages, and engines take it when other data pages become few.
//
// On a disk, memory that the program allocates has room for both copies of each page from the growth that made it, so that a full disk is
// told to the program there, and not to a checkpoint. In shared memory room is memory: there a format with late second copies takes it for
// one copy of each page, and for the second one when the page is written again.

#include <cstdint>

#include "core/result.hpp"
#include "pool/pool.hpp"
#include "versions/location_allocator.hpp"
#include "versions/version_table.hpp"

namespace stillpoint::versions {

/// Data pages of the first segment.
[[nodiscard]] FilePageRange data_pages_without_room(const Segment& first, std::uint64_t image_bytes_max) noexcept;

/// EngineFormat::pages_without_room of an engine with a delta log (versions/delta_layout.hpp): in memory second copies and the log too.
[[nodiscard]] TwoFilePageRanges pages_without_room_with_deltas(const Segment& segment, std::uint64_t image_bytes_max, Room room) noexcept;

/// A pool with late second copies (LocationAllocator::expect_late_second_copies): which other places may have no room. Copies of the heap's
/// tables since the pool was made, and the place of a page's first copy where the second one is in force: an earlier run may have given
/// it back.
void note_first_copies_without_room(const Pool& pool, const EngineFormat& format, const VersionTable& table,
                                    LocationAllocator& locations) noexcept;

/// Takes room for the pages of the heap's tables that an image of that size fills. The medium's lock is held. Errors: no_space, io.
[[nodiscard]] Result<void> take_room_for_tables(const Pool& pool, const EngineFormat& format, std::uint64_t image_bytes);

}  // namespace stillpoint::versions
