#pragma once
// Room on the disk for copies that no program needs: most of a new image are tables of the directory and of the heap, as long as the
// largest image needs them. So a new file takes none for the copies of most of their pages, and engines take it when other data pages
// become few. Memory that the program allocates has room for both copies of each page from the growth that made it, so that a full disk
// is told to the program there, and not to a checkpoint.

#include <cstdint>

#include "core/result.hpp"
#include "pool/pool.hpp"

namespace stillpoint::versions {

/// Data pages of the first segment.
[[nodiscard]] FilePageRange data_pages_without_room(const Segment& first, std::uint64_t image_bytes_max) noexcept;

/// EngineFormat::pages_without_room: the same, of an engine that has no part of its own without room.
[[nodiscard]] TwoFilePageRanges only_data_pages_without_room(const Segment& first, std::uint64_t image_bytes_max) noexcept;

/// Takes room for the pages of the heap's tables that an image of that size fills. The medium's lock is held. Errors: no_space, io.
[[nodiscard]] Result<void> take_room_for_tables(const Pool& pool, std::uint64_t image_bytes);

}  // namespace stillpoint::versions
