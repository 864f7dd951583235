#pragma once
// Common to the subcommands: how they describe themselves, how they end, how they speak.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exit_codes.hpp"
#include "output.hpp"
#include "report.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stillpoint::tool {

/// Settings of every subcommand, once the command line is parsed.
struct Invocation {
    bool quiet = false;
    /// The words after "--" of `run`, `crashtest`, `lint` or `debug`.
    std::vector<std::string> command;
    /// Set by the subcommand that was named; main() calls it.
    std::function<int()> action;
};

/// One subcommand's command line. Thin: it keeps CLI11, which is slow to compile, in one file.
/// References given to it must stay until the end of the program.
class CommandLine {
public:
    CommandLine(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& sentence);

    void positional(const std::string& name, std::string& value, bool required, const std::string& sentence);
    /// One or more words. A name with "..." in it describes several of them.
    void positionals(const std::string& name, std::vector<std::string>& values, const std::string& sentence);
    void flag(const std::string& names, bool& value, const std::string& sentence);
    /// --json: the answer is one JSON object, and so is an error.
    void json_flag(bool& value, const std::string& sentence);
    void number(const std::string& names, double& value, double minimum, double maximum, const std::string& type,
                const std::string& sentence);
    /// `take` gets the text; what it returns is the error, empty if the text is right.
    void option(const std::string& names, const std::string& type, std::function<std::string(const std::string&)> take,
                const std::string& sentence);
    /// As option(), for one that may be given again: `take` is called for each.
    void repeated_option(const std::string& names, const std::string& type, std::function<std::string(const std::string&)> take,
                         const std::string& sentence);
    void text_option(const std::string& names, const std::string& type, std::string& value, const std::string& sentence);
    /// --help shows what is added next under this heading; empty: under the usual one.
    void section(const std::string& heading);
    /// The words after the options, with or without "--", are another program's command line.
    void ends_with_a_command();
    [[nodiscard]] std::vector<std::string> command() const;
    void hide();
    /// The end of --help: examples, and the codes that the subcommand ends with.
    void footer(std::string_view examples, std::string_view exit_codes);
    /// Run by main() if this subcommand is named. After json_flag().
    void on_use(std::function<int()> action);

private:
    CLI::Option* add_option(const std::string& names, const std::string& type, std::function<std::string(const std::string&)> take,
                            const std::string& sentence);

    CLI::App* command_;
    Invocation* invocation_;
    std::string section_;
    const bool* is_json_ = nullptr;
};

// One per subcommand, each in the file of its name. `invocation` outlives the parsing.
void add_run(CLI::App& app, Invocation& invocation);
void add_standby(CLI::App& app, Invocation& invocation);
void add_info(CLI::App& app, Invocation& invocation);
void add_check(CLI::App& app, Invocation& invocation);
void add_dump(CLI::App& app, Invocation& invocation);
void add_diff(CLI::App& app, Invocation& invocation);
void add_debug(CLI::App& app, Invocation& invocation);
void add_copy(CLI::App& app, Invocation& invocation);
void add_restore(CLI::App& app, Invocation& invocation);
void add_salvage(CLI::App& app, Invocation& invocation);
void add_trim(CLI::App& app, Invocation& invocation);
void add_grow(CLI::App& app, Invocation& invocation);
void add_compact(CLI::App& app, Invocation& invocation);
void add_convert(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
void add_stats(CLI::App& app, Invocation& invocation);
void add_top(CLI::App& app, Invocation& invocation);
void add_exporter(CLI::App& app, Invocation& invocation);
void add_crashtest(CLI::App& app, Invocation& invocation);
void add_bench(CLI::App& app, Invocation& invocation);
void add_compilers(CLI::App& app, Invocation& invocation);
void add_lint(CLI::App& app, Invocation& invocation);
void add_tables(CLI::App& app, Invocation& invocation);

/// The end of a --help text.
std::string help_footer(std::string_view examples, std::string_view exit_codes);

}  // namespace stillpoint::tool
