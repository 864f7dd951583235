#pragma once
// The bytes that spht keeps in a pool file: those of every engine of redo logs.

#include "logs/log_area_layout.hpp"

namespace stillpoint::spht {

inline constexpr std::uint32_t layout_version = 2;
inline constexpr std::uint32_t layout_version_of_short_logs = 1;  ///< the first segment's log is as long as the others'
using logs::engine_area_pages;
using logs::group_page;
using logs::LogPart;
using logs::marker_page;
using logs::replay_point_magic;
using logs::replay_point_stride;
using logs::replay_points_page;
using logs::ReplayPoint;

}  // namespace stillpoint::spht
