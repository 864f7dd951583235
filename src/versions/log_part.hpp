#pragma once
// The log part of a segment: chunks, after table and data pages. How many pages it has, and which of them a new file has room for.

#include <algorithm>
#include <cstdint>

#include "pool/pool.hpp"
#include "versions/page_layout.hpp"
#include "versions/room.hpp"

namespace stillpoint::versions {

/// The parts of an engine whose logs have chunks of `chunk_pages` pages, at least `least_chunks` in a segment.
template <std::uint64_t chunk_pages, std::uint64_t least_chunks>
struct LogPart {
    static constexpr std::uint64_t chunks_min = least_chunks;

    /// Half of the image, in whole chunks.
    static constexpr std::uint64_t pages_for(std::uint64_t image_pages) noexcept
    {
        return std::max(image_pages / 2 / chunk_pages, chunks_min) * chunk_pages;
    }

    /// The least that the first segment has: little memory may be written to often. Chunks beyond chunks_min get room on the disk when
    /// they are used.
    static constexpr std::uint64_t first_pages_min(std::uint64_t image_bytes_max) noexcept
    {
        constexpr std::uint64_t most = 32 * mib / page_bytes;
        return std::clamp(image_bytes_max / 4 / page_bytes / chunk_pages * chunk_pages, chunks_min * chunk_pages, most);
    }

    /// So many chunks have all segments together at most.
    static constexpr std::uint64_t chunks_max(std::uint64_t image_pages_max) noexcept
    {
        // Each segment rounds its part up by itself.
        return pages_for(image_pages_max) / chunk_pages + Pool::segments_max * (chunks_min + 1) +
               first_pages_min(window_bytes) / chunk_pages;
    }

    /// The log pages of a segment of a sound pool.
    static constexpr std::uint64_t pages_of(const Segment& segment) noexcept
    {
        return segment.file_pages - versions::segment_file_pages(segment.image_pages);
    }

    /// First file page of a segment's log part.
    static constexpr std::uint64_t first_page(const Segment& segment) noexcept
    {
        return segment.first_file_page + versions::segment_file_pages(segment.image_pages);
    }

    /// EngineFormat::segment_file_pages.
    static constexpr std::uint64_t segment_file_pages(std::uint64_t image_pages) noexcept
    {
        static_assert(pages_for(1) <= engine_part_pages_max(1));
        static_assert(pages_for(window_bytes / page_bytes) <= engine_part_pages_max(window_bytes / page_bytes));
        return versions::segment_file_pages(image_pages) + pages_for(image_pages);
    }

    /// EngineFormat::first_segment_file_pages.
    static constexpr std::uint64_t first_segment_file_pages(std::uint64_t image_pages, std::uint64_t image_bytes_max) noexcept
    {
        return versions::segment_file_pages(image_pages) + std::max(pages_for(image_pages), first_pages_min(image_bytes_max));
    }

    /// EngineFormat::pages_without_room: of the first segment copies of the heap's tables, and what the logs have beyond their least size.
    static TwoFilePageRanges pages_without_room(const Segment& segment, std::uint64_t image_bytes_max, Room) noexcept
    {
        if (segment.first_image_page != 0) {
            return {};
        }
        const std::uint64_t log = first_page(segment);
        return {data_pages_without_room(segment, image_bytes_max), FilePageRange{log + chunks_min * chunk_pages, log + pages_of(segment)}};
    }
};

}  // namespace stillpoint::versions
