#pragma once
// Starting a program durably: what `run` and `lint` do before its first instruction.

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "api/options.hpp"
#include "program.hpp"
#include "runtime_flags.hpp"

namespace stillpoint::tool {

struct Start {
    std::string program;  ///< its path
    Options options;      ///< what the library will find in the environment
};

/// Examines the program and sets this process's environment (the preloaded library and its options), for an exec to
/// follow. `subcommand` is for messages. Refuses what cannot be run durably, and options that do not fit.
[[nodiscard]] tl::expected<Start, Refusal> prepare_start(const RuntimeFlags& flags, const std::vector<std::string>& command,
                                                         std::string_view subcommand);

/// Becomes the program; returns an exit code only if the system refuses.
[[nodiscard]] int become_program(const std::string& program, std::vector<std::string> command);

}  // namespace stillpoint::tool
