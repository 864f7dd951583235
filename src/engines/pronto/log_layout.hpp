#pragma once
// The bytes that pronto keeps in a pool file, and where.
//
//   engine area (4 pages):  commit record, even epochs, copy 0 | copy 1 | odd epochs, copy 0 | copy 1
//   segment:                as versions/page_layout.hpp has it | log pages, in chunks
//
// How large the log part of a segment is follows from its image pages alone, so nothing of it is stored.

#include <algorithm>
#include <cstdint>

#include "pool/commit_layout.hpp"
#include "pool/pool.hpp"
#include "versions/page_layout.hpp"

namespace stillpoint::pronto {

inline constexpr std::uint32_t layout_version = 2;
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

/// First file page of a segment's log part.
constexpr std::uint64_t first_log_page(const Segment& segment) noexcept
{
    return segment.first_file_page + versions::segment_file_pages(segment.image_pages);
}

}  // namespace stillpoint::pronto
