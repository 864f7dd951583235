#pragma once
// Figures of pools in the text format of Prometheus, version 0.0.4: names `stillpoint_...` in base units, each with HELP and TYPE from the
// table of statistics.

#include <string>
#include <string_view>
#include <vector>

#include "watched_pools.hpp"

namespace stillpoint::tool {

inline constexpr std::string_view exposition_type = "text/plain; version=0.0.4; charset=utf-8";

/// All figures of all those pools, one family after the other.
[[nodiscard]] std::string exposition_of(const std::vector<WatchedPool>& pools);

}  // namespace stillpoint::tool
