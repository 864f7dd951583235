#pragma once
// The pools that `stats`, `exporter` and `top` watch, and the programs that have them open.

#include <optional>
#include <string>
#include <vector>

#include "api/statistics.hpp"
#include "core/result.hpp"

namespace stillpoint::tool {

struct WatchedPool {
    std::string path;                    ///< as the user named it, or as a pattern found it
    pid_t process = 0;                   ///< that has it open; 0: none, or it cannot be seen
    std::optional<StatisticsView> view;  ///< its figures
    std::string problem;                 ///< why there are none, unless the program has just not begun
};

/// `named`: paths and patterns of the shell. A pattern stands for the pools among the files that it matches now; a path is watched also
/// where there is no file. Each file is there once, in the order of the names.
[[nodiscard]] std::vector<WatchedPool> look_at_pools(const std::vector<std::string>& named);

/// The pool's program and its figures. Errors: as open_statistics; not_open (no program has it open).
[[nodiscard]] Result<WatchedPool> look_at_pool(const std::string& path);

}  // namespace stillpoint::tool
