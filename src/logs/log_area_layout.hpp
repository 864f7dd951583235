#pragma once
// The bytes of an engine of redo logs in a pool file beside its logs, and where they lie.
//
//   engine area (9 pages):  commit record, even epochs, copy 0 | copy 1 | odd epochs, copy 0 | copy 1 | marker
//                           | group records of even numbers | group records of odd numbers | replay points | their copy
//   segment:                as versions/page_layout.hpp has it | log pages, in chunks (redo_layout.hpp)

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "logs/redo_layout.hpp"
#include "pool/commit_layout.hpp"
#include "pool/pool.hpp"
#include "versions/page_layout.hpp"
#include "versions/room.hpp"

namespace stillpoint::logs {

inline constexpr std::uint64_t marker_page = commit_area_pages;  ///< of the engine area
inline constexpr std::uint64_t group_page = marker_page + 1;     ///< the first of two
inline constexpr std::uint64_t replay_points_page = group_page + 2;
inline constexpr std::uint64_t engine_area_pages = replay_points_page + 2;

inline constexpr std::uint64_t log_chunks_min = 16;

/// Half of the image, in whole chunks.
constexpr std::uint64_t log_pages_for(std::uint64_t image_pages) noexcept
{
    const std::uint64_t chunks = image_pages / 2 / chunk_pages;
    return std::max(chunks, log_chunks_min) * chunk_pages;
}
static_assert(log_pages_for(1) <= versions::engine_part_pages_max(1));
static_assert(log_pages_for(window_bytes / page_bytes) <= versions::engine_part_pages_max(window_bytes / page_bytes));

/// EngineFormat::segment_file_pages.
constexpr std::uint64_t segment_file_pages(std::uint64_t image_pages) noexcept
{
    return versions::segment_file_pages(image_pages) + log_pages_for(image_pages);
}

/// The least that the log part of the first segment has: little memory may be written to often. Chunks beyond log_chunks_min get room
/// on the disk when they are used.
constexpr std::uint64_t first_log_pages_min(std::uint64_t image_bytes_max) noexcept
{
    constexpr std::uint64_t most = 32 * mib / page_bytes;
    return std::clamp(image_bytes_max / 4 / page_bytes / chunk_pages * chunk_pages, log_chunks_min * chunk_pages, most);
}

/// EngineFormat::first_segment_file_pages.
constexpr std::uint64_t first_segment_file_pages(std::uint64_t image_pages, std::uint64_t image_bytes_max) noexcept
{
    return versions::segment_file_pages(image_pages) + std::max(log_pages_for(image_pages), first_log_pages_min(image_bytes_max));
}

/// So many chunks have all segments together at most.
constexpr std::uint64_t log_chunks_max(std::uint64_t image_pages_max) noexcept
{
    // Each segment rounds its part up by itself.
    return log_pages_for(image_pages_max) / chunk_pages + Pool::segments_max * (log_chunks_min + 1) +
           first_log_pages_min(window_bytes) / chunk_pages;
}

/// The log pages of a segment of a sound pool.
constexpr std::uint64_t log_pages_of(const Segment& segment) noexcept
{
    return segment.file_pages - versions::segment_file_pages(segment.image_pages);
}

/// First file page of a segment's log part.
constexpr std::uint64_t first_log_page(const Segment& segment) noexcept
{
    return segment.first_file_page + versions::segment_file_pages(segment.image_pages);
}

/// EngineFormat::pages_without_room: copies of the heap's tables, and what the logs have beyond their least size.
inline TwoFilePageRanges pages_without_room(const Segment& first, std::uint64_t image_bytes_max) noexcept
{
    const std::uint64_t log = first_log_page(first);
    return {versions::data_pages_without_room(first, image_bytes_max),
            FilePageRange{log + log_chunks_min * chunk_pages, log + log_pages_of(first)}};
}

inline constexpr std::uint64_t replay_point_magic = 0x3154'5052'5448'5053;

/// How far the page copies of an epoch go. The page has one for even and one for odd epochs: that of an epoch that does not commit
/// does not touch the one in force.
struct ReplayPoint {
    std::uint64_t magic;
    std::uint64_t checksum;  ///< of the fields that follow
    std::uint64_t epoch;  ///< of the commit record that puts it in force
    Timestamp replayed;  ///< the copies have every transaction up to it; older log records, and void ones, are done with
    std::uint64_t transactions;  ///< how many that are, in all runs; block media
};
static_assert(sizeof(ReplayPoint) == 40 && std::is_trivially_copyable_v<ReplayPoint>);
inline constexpr std::uint64_t replay_point_stride = 2048;  ///< from the even epochs' to the odd ones'

}  // namespace stillpoint::logs
