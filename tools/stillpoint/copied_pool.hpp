#pragma once
// Shared by `stillpoint compact` and `stillpoint convert`: the new pool's size, and figures of both pools.

#include <cstdint>
#include <string>
#include <string_view>

#include "api/registry.hpp"
#include "command.hpp"
#include "json.hpp"

namespace stillpoint::tool {

/// The option --size: takes a size with a unit, as --pool-size does.
void add_size_option(CommandLine& line, std::uint64_t& size_mb);

/// Reports that the pool's engine does not know the objects of its programs, so that it cannot be `done`, e.g. "compacted". The exit code.
[[nodiscard]] int refuse_engine(const std::string& path, std::string_view engine, std::string_view done);

void add_copy_figures(Json& json, const CompactionFigures& figures);
/// The rows of a table, and a sentence on what was left out.
void print_copy_figures(const CompactionFigures& figures);

}  // namespace stillpoint::tool
