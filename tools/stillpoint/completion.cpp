// `stillpoint completion SHELL`: completion for a shell, made from the command line's own tables. Hidden: the build calls it, and installs
// what it prints.

#include <algorithm>
#include <iterator>
#include <utility>

#include "command.hpp"
#include "command_shapes.hpp"
#include "option_flags.hpp"

namespace stillpoint::tool {

namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between)
{
    std::string text;
    for (const std::string& word : words) {
        text += (text.empty() ? std::string_view() : between);
        text += word;
    }
    return text;
}

/// The first sentence, without what has a meaning in a shell's quotes and descriptions.
std::string brief(const std::string& sentence)
{
    std::string text = sentence.substr(0, std::min(sentence.find(". "), sentence.find(": stillpoint ")));
    if (text.ends_with('.')) {
        text.pop_back();
    }
    std::erase_if(text, [](char c) { return c == '\'' || c == '`' || c == '[' || c == ']'; });
    std::ranges::replace(text, ':', ',');
    return text;
}

/// The words that an option takes, where it takes one of a few.
std::vector<std::string> choices_of(const OptionShape& option)
{
    for (const OptionRow& row : option_rows()) {
        if (row.kind != OptionKind::choice || std::ranges::find(option.names, row.flag_name()) == option.names.end()) {
            continue;
        }
        std::vector<std::string> words;
        std::string_view rest = row.words;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find('|'), rest.size());
            words.emplace_back(rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        return words;
    }
    return {};
}

bool takes_a_file(const OptionShape& option)
{
    constexpr std::string_view no_files[] = {"", "NUMBER", "WORD", "SECONDS", "MS", "SIZE", "OBJECT", "CMD", "TYPE.FIELD,..."};
    return std::ranges::find(no_files, option.value) == std::end(no_files);
}

bool is_positional(const OptionShape& option) { return option.names.empty(); }

// bash: what is not completed here, as a name of a file, is left to bash.

void print_bash(const CommandShape& top, const std::vector<CommandShape>& commands)
{
    std::vector<std::string> names;
    std::string options;
    std::string values;
    for (const CommandShape& command : commands) {
        names.push_back(command.name);
        std::vector<std::string> known;
        for (const OptionShape& option : command.options) {
            std::ranges::copy_if(option.names, std::back_inserter(known), [](const std::string& name) { return name.starts_with("--"); });
            if (const auto words = choices_of(option); !words.empty()) {
                values += text_of("    {}:{}) words='{}' ;;\n", command.name, joined(option.names, text_of("|{}:", command.name)),
                                  joined(words, " "));
            } else if (!is_positional(option) && !option.value.empty()) {
                values += text_of("    {}:{}) return ;;\n", command.name, joined(option.names, text_of("|{}:", command.name)));
            }
        }
        options += text_of("    {}) words='{}' ;;\n", command.name, joined(known, " "));
    }
    std::vector<std::string> top_options;
    for (const OptionShape& option : top.options) {
        std::ranges::copy_if(option.names, std::back_inserter(top_options), [](const std::string& name) { return name.starts_with("--"); });
    }
    print("# Completion of stillpoint for bash: made by `stillpoint completion bash`.\n"
          "_stillpoint()\n{{\n"
          "    COMPREPLY=()\n"
          "    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= words= at\n"
          "    if [[ $current == = ]]; then current=; elif [[ $previous == = ]]; then previous=${{COMP_WORDS[COMP_CWORD-2]}}; fi\n"
          "    for ((at = 1; at < COMP_CWORD; ++at)); do\n"
          "        [[ ${{COMP_WORDS[at]}} == -- ]] && return\n"
          "        [[ -z $command && ${{COMP_WORDS[at]}} != -* ]] && command=${{COMP_WORDS[at]}}\n"
          "    done\n"
          "    case $command:$previous in\n{}"
          "    *) [[ $current == -* || -z $command ]] || return\n"
          "       case $command in\n{}"
          "       '') [[ $current == -* ]] && words='{}' || words='{}' ;;\n"
          "       esac ;;\n"
          "    esac\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
          "}}\n"
          "complete -o bashdefault -o default -F _stillpoint stillpoint\n",
          values, options, joined(top_options, " "), joined(names, " "));
}

// zsh.

std::string zsh_value(const OptionShape& option)
{
    if (const auto words = choices_of(option); !words.empty()) {
        return text_of("({})", joined(words, " "));
    }
    return takes_a_file(option) ? "_files" : " ";
}

void print_zsh_option(const OptionShape& option, std::string_view indent)
{
    const std::string value = option.value.empty() ? "" : text_of(":{}:{}", brief(option.value), zsh_value(option));
    for (const std::string& name : option.names) {
        // A long option takes its value after "=", too; one of several names excludes the others.
        const std::string_view equals = !value.empty() && name.starts_with("--") ? "=" : "";
        print("{}'({}){}{}[{}]{}' \\\n", indent, joined(option.names, " "), name, equals, brief(option.sentence), value);
    }
}

void print_zsh(const CommandShape& top, const std::vector<CommandShape>& commands)
{
    print("#compdef stillpoint\n# Completion of stillpoint for zsh: made by `stillpoint completion zsh`.\n"
          "local -a commands\nlocal state line\ncommands=(\n");
    for (const CommandShape& command : commands) {
        print("    '{}:{}'\n", command.name, brief(command.sentence));
    }
    print(")\n_arguments -C \\\n");
    for (const OptionShape& option : top.options) {
        print_zsh_option(option, "    ");
    }
    print("    '1:command:->command' '*::argument:->argument'\n"
          "case $state in\ncommand) _describe command commands ;;\nargument)\n    case $words[1] in\n");
    for (const CommandShape& command : commands) {
        print("    {})\n        _arguments -S \\\n", command.name);
        int position = 0;
        for (const OptionShape& option : command.options) {
            if (is_positional(option)) {
                print("            '{}:{}:_files' \\\n", ++position, option.value);
            } else {
                print_zsh_option(option, "            ");
            }
        }
        print("            {} ;;\n", command.ends_with_a_command ? "'*::program:_normal'" : "&& return");
    }
    print("    esac ;;\nesac\n");
}

// fish.

void print_fish(const CommandShape& top, const std::vector<CommandShape>& commands)
{
    const auto print_option = [](const OptionShape& option, std::string_view condition) {
        std::string names;
        for (const std::string& name : option.names) {
            names += name.starts_with("--") ? text_of(" -l {}", name.substr(2)) : text_of(" -s {}", name.substr(1));
        }
        const auto words = choices_of(option);
        const std::string value = option.value.empty()   ? ""
                                  : !words.empty()       ? text_of(" -x -a '{}'", joined(words, " "))
                                  : takes_a_file(option) ? " -r -F"
                                                         : " -x";
        print("complete -c stillpoint -n '{}'{}{} -d '{}'\n", condition, names, value, brief(option.sentence));
    };
    print("# Completion of stillpoint for fish: made by `stillpoint completion fish`.\n");
    for (const OptionShape& option : top.options) {
        print_option(option, "__fish_use_subcommand");
    }
    for (const CommandShape& command : commands) {
        print("complete -c stillpoint -f -n __fish_use_subcommand -a '{}' -d '{}'\n", command.name, brief(command.sentence));
        for (const OptionShape& option : command.options) {
            if (!is_positional(option)) {
                print_option(option, text_of("__fish_seen_subcommand_from {}", command.name));
            }
        }
    }
}

}  // namespace

int print_completion(const std::string& shell, const CommandShape& top, const std::vector<CommandShape>& commands)
{
    constexpr std::pair<std::string_view, void (*)(const CommandShape&, const std::vector<CommandShape>&)> shells[] = {
        {"bash", &print_bash}, {"zsh", &print_zsh}, {"fish", &print_fish}};
    for (const auto& [name, print_for] : shells) {
        if (name == shell) {
            print_for(top, commands);
            return exit_codes::ok;
        }
    }
    return report_error(exit_codes::usage, text_of("there is no completion for '{}': bash, zsh or fish", printable(shell)));
}

}  // namespace stillpoint::tool
