#pragma once
// The runtime's options as flags of a subcommand that starts programs: `run` and `crashtest`.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/options.hpp"
#include "command.hpp"

namespace stillpoint::tool {

struct RuntimeFlags {
    std::map<const OptionRow*, bool> flags;          ///< those of the table, and whether they were given
    std::map<std::string, std::string> environment;  ///< variable and value of the options that were given

    /// Moves the flags that were given, and `quiet`, into `environment`.
    void settle(bool quiet);
};

/// Adds every option of the table for which `wanted` says true. `given` gets what the user says.
void add_runtime_flags(CommandLine& line, const std::shared_ptr<RuntimeFlags>& given, const std::function<bool(const OptionRow&)>& wanted);

}  // namespace stillpoint::tool
