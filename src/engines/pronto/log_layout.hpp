#pragma once
// The bytes that pronto keeps in a pool file, and where.
//
//   engine area (4 pages):  commit record, even epochs, copy 0 | copy 1 | odd epochs, copy 0 | copy 1
//   segment:                as versions/page_layout.hpp has it | log pages, in chunks

#include <algorithm>
#include <cstdint>

#include "pool/commit_layout.hpp"
#include "pool/pool.hpp"
#include "versions/page_layout.hpp"
#include "versions/room.hpp"

namespace stillpoint::pronto {

inline constexpr std::uint32_t layout_version = 3;
inline constexpr std::uint32_t layout_version_of_short_logs = 2;  ///< the first segment's log is as long as the others'
inline constexpr std::uint64_t engine_area_pages = commit_area_pages;

inline constexpr std::uint64_t log_chunk_pages = 64;
inline constexpr std::uint64_t log_chunks_min = 8;

/// Half of the image, in whole chunks.
constexpr std::uint64_t log_pages_for(std::uint64_t image_pages) noexcept
{
    const std::uint64_t chunks = image_pages / 2 / log_chunk_pages;
    return std::max(chunks, log_chunks_min) * log_chunk_pages;
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
    return std::clamp(image_bytes_max / 4 / page_bytes / log_chunk_pages * log_chunk_pages, log_chunks_min * log_chunk_pages, most);
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
    return log_pages_for(image_pages_max) / log_chunk_pages + Pool::segments_max * (log_chunks_min + 1) +
           first_log_pages_min(window_bytes) / log_chunk_pages;
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

/// EngineFormat::pages_without_room: copies of the heap's tables, and what the log has beyond its least size.
inline TwoFilePageRanges pages_without_room(const Segment& first, std::uint64_t image_bytes_max) noexcept
{
    const std::uint64_t log = first_log_page(first);
    return {versions::data_pages_without_room(first, image_bytes_max),
            FilePageRange{log + log_chunks_min * log_chunk_pages, log + log_pages_of(first)}};
}

}  // namespace stillpoint::pronto
