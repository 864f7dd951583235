#pragma once
// The bytes that pmthreads keeps in a pool file; docs/internals/format/pmthreads.md explains it with a byte example.
//
//   engine area (4 pages):  commit record, even epochs, copy 0 | copy 1 | odd epochs, copy 0 | copy 1
//   segment:                as versions/page_layout.hpp has it | delta pages (versions/delta_layout.hpp), from format 3 on

#include <cstdint>

#include "pool/commit_layout.hpp"
#include "versions/delta_layout.hpp"
#include "versions/page_layout.hpp"

namespace stillpoint::pmthreads {

inline constexpr std::uint32_t layout_version = 3;
inline constexpr std::uint32_t layout_version_without_deltas = 2;
inline constexpr std::uint64_t engine_area_pages = commit_area_pages;

}  // namespace stillpoint::pmthreads
