#pragma once
// What the subcommands share: how they join the command line, how they end, how they speak.

#include <functional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "core/result.hpp"

namespace stillpoint::tool {

/// Exit codes of the tool's own findings; a Failure's code has exit_code_for() of
/// runtime/session.hpp. Numbers follow sysexits.h and the shell; docs/exit-codes.md explains each.
namespace exit_codes {
inline constexpr int ok = 0;
inline constexpr int usage = 64;
inline constexpr int unavailable = 69;
inline constexpr int not_runnable = 126;
inline constexpr int program_missing = 127;
}  // namespace exit_codes

/// What the parsed command line asks for.
struct Invocation {
    bool quiet = false;
    /// Set by the subcommand that was named; main() calls it once parsing is over.
    std::function<int()> action;
};

// One per subcommand, each in the file of its name. `invocation` outlives the parsing.
void add_run(CLI::App& app, Invocation& invocation);
void add_info(CLI::App& app, Invocation& invocation);
void add_check(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
void add_stats(CLI::App& app, Invocation& invocation);
void add_tables(CLI::App& app, Invocation& invocation);

/// Prints "stillpoint: error: text" on standard error and returns `exit_code`.
int report_error(int exit_code, std::string_view text);
/// The same for a failure of the library.
int report_failure(const Failure& failure);

/// The end of every --help: the codes that the subcommand ends with.
std::string help_footer(std::string_view examples, std::string_view exit_codes);

}  // namespace stillpoint::tool
