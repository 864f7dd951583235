#pragma once
// Shared by `stillpoint compact` and `stillpoint convert`: the new pool's size, and figures of both pools.

#include <functional>
#include <string>
#include <string_view>

#include "api/registry.hpp"
#include "json.hpp"

namespace stillpoint::tool {

/// Takes a size with a unit into `value`, as --pool-size does; for CommandLine::option().
[[nodiscard]] std::function<std::string(const std::string&)> size_in_mb(std::uint64_t& value);

/// The engines that can copy a pool's objects, for a message.
[[nodiscard]] std::string names_of_copying_engines();

void add_copy_figures(Json& json, const CompactionFigures& figures);
/// The rows of a table, and a sentence on what was left out.
void print_copy_figures(const CompactionFigures& figures);

}  // namespace stillpoint::tool
