#pragma once
// The bytes that pronto keeps in a pool file, and where.
//
//   engine area (4 pages):  commit record, even epochs, copy 0 | copy 1 | odd epochs, copy 0 | copy 1
//   segment:                as versions/page_layout.hpp has it | log pages, in chunks

#include <cstdint>

#include "pool/commit_layout.hpp"
#include "versions/log_part.hpp"

namespace stillpoint::pronto {

inline constexpr std::uint32_t layout_version = 4;
inline constexpr std::uint32_t layout_version_without_groups = 3;  ///< no entry relies on the one before it
inline constexpr std::uint32_t layout_version_of_short_logs = 2;  ///< the first segment's log is as long as the others'
inline constexpr std::uint64_t engine_area_pages = commit_area_pages;

inline constexpr std::uint64_t log_chunk_pages = 64;
using LogPart = versions::LogPart<log_chunk_pages, 8>;

}  // namespace stillpoint::pronto
