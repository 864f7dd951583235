// Suggestions: the nearest known word for one that the command does not know.

#include <algorithm>

#include "command_shapes.hpp"
#include "core/edit_distance.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

/// Empty: none is so near that it can be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& known)
{
    std::string_view best;
    std::size_t best_distance = word.size() + 1;
    for (const std::string& candidate : known) {
        // A word that was begun and not finished is near: "comp" for compact.
        const bool is_begun = word.size() >= 2 && candidate.starts_with(word);
        const std::size_t distance = is_begun ? 1 : edit_distance(word, candidate);
        if (distance < best_distance && 2 * distance <= std::max(word.size(), candidate.size())) {
            best = candidate;
            best_distance = distance;
        }
    }
    return std::string(best);
}

}  // namespace

std::string text_of_unknown_command(std::string_view word, const std::vector<CommandShape>& commands)
{
    std::vector<std::string> known;
    std::string all;
    for (const CommandShape& command : commands) {
        known.push_back(command.name);
        all += (all.empty() ? "" : ", ") + command.name;
    }
    known.emplace_back("--help");
    known.emplace_back("--version");
    const std::string meant = nearest(word, known);
    return text_of("there is no command '{}'{} Commands: {} (see `stillpoint --help`)", printable(word),
                   meant.empty() ? "." : text_of("; did you mean '{}'?", meant), all);
}

std::string text_of_unknown_option(std::string_view option, const CommandShape& command)
{
    const std::string_view name = option.substr(0, option.find('='));
    std::vector<std::string> known;  // Without their dashes, which make all of them alike.
    for (const OptionShape& one : command.options) {
        for (const std::string& text : one.names) {
            if (text.starts_with("--")) {
                known.push_back(text.substr(2));
            }
        }
    }
    const std::string meant = nearest(name.substr(std::min(name.find_first_not_of('-'), name.size())), known);
    const std::string called = command.name.empty() ? "stillpoint" : command.name;
    const std::string help = command.name.empty() ? "stillpoint" : "stillpoint " + command.name;
    return text_of("{} has no option {}{} (see `{} --help`){}", called, printable(name),
                   meant.empty() ? "" : text_of("; did you mean --{}?", meant), help,
                   command.ends_with_a_command ? "; the program's own options come after its name" : "");
}

}  // namespace stillpoint::tool
