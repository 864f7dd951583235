#pragma once
// `stillpoint bench`: becomes the benchmark's driver (bench/driver), a Python program.

#include <optional>
#include <string>
#include <vector>

namespace stillpoint::tool {

/// The words after `stillpoint bench`; none: the command line asks for something else.
[[nodiscard]] std::optional<std::vector<std::string>> bench_call(int argc, char** argv);

/// Becomes the driver by exec; returns an exit code only if that cannot be. Every word is the driver's: it has its own help.
[[nodiscard]] int run_bench(const std::vector<std::string>& words);

}  // namespace stillpoint::tool
