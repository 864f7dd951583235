#pragma once
// The bytes of an engine of redo logs in a pool file beside its logs, and where they lie.
//
//   engine area (9 pages):  commit record, even epochs, copy 0 | copy 1 | odd epochs, copy 0 | copy 1 | marker
//                           | group records of even numbers | group records of odd numbers | replay points | their copy
//   segment:                as versions/page_layout.hpp has it | log pages, in chunks (redo_layout.hpp)

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "logs/redo_layout.hpp"
#include "pool/commit_layout.hpp"
#include "versions/log_part.hpp"

namespace stillpoint::logs {

inline constexpr std::uint64_t marker_page = commit_area_pages;  ///< of the engine area
inline constexpr std::uint64_t group_page = marker_page + 1;     ///< the first of two
inline constexpr std::uint64_t replay_points_page = group_page + 2;
inline constexpr std::uint64_t engine_area_pages = replay_points_page + 2;

using LogPart = versions::LogPart<chunk_pages, 16>;

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
