#pragma once
// The command line's own tables as plain values: for suggestions and for shell completion.

#include <string>
#include <string_view>
#include <vector>

namespace stillpoint::tool {

struct OptionShape {
    std::vector<std::string> names;  ///< "-q", "--quiet"; empty for a positional argument
    std::string value;               ///< the word for its value in --help, "" for a flag
    std::string sentence;
};

struct CommandShape {
    std::string name;
    std::string sentence;
    std::vector<OptionShape> options;
    bool ends_with_a_command = false;  ///< another program's command line follows
};

/// "there is no command 'inf'; did you mean 'info'? ...". `commands`: those of --help.
[[nodiscard]] std::string text_of_unknown_command(std::string_view word, const std::vector<CommandShape>& commands);

/// "info has no option --jsn; did you mean --json? ..."
[[nodiscard]] std::string text_of_unknown_option(std::string_view option, const CommandShape& command);

/// Prints the completion for bash, zsh or fish. `top`: the options before a command. Returns the exit code.
[[nodiscard]] int print_completion(const std::string& shell, const CommandShape& top, const std::vector<CommandShape>& commands);

}  // namespace stillpoint::tool
