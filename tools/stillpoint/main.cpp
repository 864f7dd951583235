// stillpoint: runs programs durably, and looks into their pools. One file per subcommand.

#include <algorithm>
#include <iterator>

#include <CLI/CLI.hpp>

#include "bench.hpp"
#include "command.hpp"
#include "command_shapes.hpp"
#include "compiler.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::tool {

std::string help_footer(std::string_view examples, std::string_view exit_codes)
{
    return text_of("Examples:\n{}\nExit codes:\n{}All of them: docs/guide/exit-codes.md, stillpoint(1).", examples, exit_codes);
}

namespace {

void in_section(CLI::Option* option, const std::string& heading)
{
    if (!heading.empty()) {
        option->group(heading);
    }
}

CommandShape shape_of(const CLI::App& app)
{
    CommandShape shape{app.get_parent() == nullptr ? "" : app.get_name(), app.get_description(), {}, app.get_prefix_command()};
    for (const CLI::Option* const option : app.get_options()) {
        OptionShape one{{}, option->get_items_expected_max() == 0 ? "" : option->get_type_name(), option->get_description()};
        for (const std::string& name : option->get_snames()) {
            one.names.push_back("-" + name);
        }
        for (const std::string& name : option->get_lnames()) {
            one.names.push_back("--" + name);
        }
        if (one.names.empty()) {
            one.value = option->get_name(true);
        }
        shape.options.push_back(std::move(one));
    }
    return shape;
}

/// The commands that --help shows, in its order.
std::vector<CommandShape> shapes_of_commands(const CLI::App& app)
{
    std::vector<CommandShape> shapes;
    for (const CLI::App* const command : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
        shapes.push_back(shape_of(*command));
    }
    return shapes;
}

/// The first word that looks like an option and is none; empty: there is none.
std::string unknown_option(const CLI::App& app)
{
    const std::vector<std::string> words = app.remaining();
    if (app.get_prefix_command()) {
        return !words.empty() && words.front().size() > 1 && words.front().starts_with("-") ? words.front() : "";
    }
    const auto found = std::ranges::find_if(words, [](const std::string& word) { return word.size() > 1 && word.starts_with("-"); });
    return found == words.end() ? "" : *found;
}

int report_usage(std::string_view text, const std::string& command)
{
    return report_error(exit_codes::usage, text, {.next = text_of("`stillpoint{}{} --help`", command.empty() ? "" : " ", command)});
}

}  // namespace

CommandLine::CommandLine(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& sentence)
    : command_(app.add_subcommand(name, sentence)), invocation_(&invocation)
{
}

void CommandLine::positional(const std::string& name, std::string& value, bool required, const std::string& sentence)
{
    command_->add_option(name, value, sentence)->required(required)->type_name("");
}

namespace {

/// The line "Usage:" of --help adds nothing to the names of words.
class NamedAsGiven final : public CLI::Formatter {
    std::string make_option_usage(const CLI::Option* option) const override { return make_option_name(option, true); }
};

}  // namespace

void CommandLine::positionals(const std::string& name, std::vector<std::string>& values, const std::string& sentence)
{
    CLI::Option* const option = command_->add_option(name, values, sentence)->required()->type_name("");
    if (name.find("...") != std::string::npos) {  // The name tells which of them may be more than one.
        option->option_text("REQUIRED");
        command_->formatter(std::make_shared<NamedAsGiven>());
    }
}

void CommandLine::flag(const std::string& names, bool& value, const std::string& sentence)
{
    in_section(command_->add_flag(names, value, sentence), section_);
}

void CommandLine::number(const std::string& names, double& value, double minimum, double maximum, const std::string& type,
                         const std::string& sentence)
{
    command_->add_option(names, value, sentence)->check(CLI::Range(minimum, maximum))->type_name(type);
}

CLI::Option* CommandLine::add_option(const std::string& names, const std::string& type, std::function<std::string(const std::string&)> take,
                                     const std::string& sentence)
{
    const auto check = [take = std::move(take), names](const std::string& text) {
        if (const std::string error = take(text); !error.empty()) {
            throw CLI::ValidationError(names.substr(0, names.find(',')), error);
        }
    };
    CLI::Option* const option = command_->add_option_function<std::string>(names, check, sentence)->type_name(type);
    in_section(option, section_);
    return option;
}

void CommandLine::option(const std::string& names, const std::string& type, std::function<std::string(const std::string&)> take,
                         const std::string& sentence)
{
    add_option(names, type, std::move(take), sentence);
}

void CommandLine::repeated_option(const std::string& names, const std::string& type, std::function<std::string(const std::string&)> take,
                                  const std::string& sentence)
{
    add_option(names, type, std::move(take), sentence)->trigger_on_parse();
}

void CommandLine::text_option(const std::string& names, const std::string& type, std::string& value, const std::string& sentence)
{
    const auto keep = [&value](const std::string& text) {
        value = text;
        return std::string();
    };
    add_option(names, type, keep, sentence);
}

void CommandLine::section(const std::string& heading) { section_ = heading; }

void CommandLine::ends_with_a_command() { command_->prefix_command(); }

std::vector<std::string> CommandLine::command() const
{
    std::vector<std::string> words = command_->remaining();
    words.insert(words.end(), invocation_->command.begin(), invocation_->command.end());
    return words;
}

void CommandLine::hide() { command_->group(""); }

void CommandLine::footer(std::string_view examples, std::string_view exit_codes) { command_->footer(help_footer(examples, exit_codes)); }

void CommandLine::json_flag(bool& value, const std::string& sentence)
{
    flag("--json", value, sentence);
    is_json_ = &value;
}

void CommandLine::on_use(std::function<int()> action)
{
    command_->final_callback([invocation = invocation_, command = command_, is_json = is_json_, action = std::move(action)] {
        invocation->action = [=] {
            if (is_json != nullptr && *is_json) {
                answer_in_json();
            }
            if (const std::string option = unknown_option(*command); !option.empty()) {
                return report_usage(text_of_unknown_option(option, shape_of(*command)), command->get_name());
            }
            return action();
        };
    });
}

namespace {

constexpr std::string_view examples = "  stillpoint doctor .                            what can be promised for a pool in this folder\n"
                                      "  stillpoint run --pool bank.pool -- ./bank 2    run ./bank, its memory kept in bank.pool\n"
                                      "  stillpoint stats bank.pool                     figures of the running program\n"
                                      "  stillpoint check bank.pool                     verify every checksum after it has ended\n";

constexpr std::string_view exit_code_lines =
    "  0 success; 64 wrong usage; 65 damaged or foreign pool; 66 no such pool; 69 not available here;\n"
    "  73 no space; 74 input/output error; 75 pool in use; 77 no permission\n"
    "  `run` ends with the program's own code, 126 if it cannot be run durably, 127 if it is not found.\n";

/// Takes the program's command line, after the "--" of `run`, `crashtest`, `lint` and `debug`, out of ours: CLI11 would look for positional
/// arguments there. Returns how many arguments are left.
int split_command(int argc, char** argv, Invocation& invocation)
{
    bool takes_a_command = false;
    for (int index = 1; index < argc; ++index) {
        const std::string_view word = argv[index];
        if (word == "--" && takes_a_command) {
            invocation.command.assign(argv + index + 1, argv + argc);
            return index;
        }
        takes_a_command = takes_a_command || word == "run" || word == "standby" || word == "crashtest" || word == "lint" || word == "debug";
        if (!takes_a_command && !word.starts_with("-")) {
            break;  // another subcommand
        }
    }
    return argc;
}

/// The word where a command is expected; empty: there is none.
std::string_view first_word(int argc, char** argv)
{
    char** const found = std::find_if(argv + 1, argv + argc, [](const char* word) { return *word != '-'; });
    return found == argv + argc ? "" : *found;
}

/// Whether the words of a command line that is wrong ask for JSON. Those after "--" are not among them.
bool asks_for_json(int argc, char** argv)
{
    const std::string_view command = first_word(argc, argv);
    constexpr std::string_view without_json[] = {"run", "bench", "cc", "c++"};  // The word may be another program's, or mean a file.
    return std::ranges::find(without_json, command) == std::end(without_json) &&
           std::any_of(argv + 1, argv + argc, [](const char* word) { return word == std::string_view("--json"); });
}

/// Turns what CLI11 found wrong into one line and an exit code.
int report_parse_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv)
{
    if (error.get_exit_code() == 0) {
        return app.exit(error);  // --help or --version: CLI11 prints them
    }
    if (asks_for_json(argc, argv)) {
        answer_in_json();
    }
    const auto parsed = app.get_subcommands();
    if (const std::string_view word = first_word(argc, argv); parsed.empty() && !word.empty()) {
        return report_usage(text_of_unknown_command(word, shapes_of_commands(app)), "");
    }
    const CLI::App& used = parsed.empty() ? app : *parsed.front();
    const CommandShape shape = shape_of(used);
    for (const CLI::App* const one : {&used, &app}) {
        if (const std::string option = unknown_option(*one); !option.empty()) {
            return report_usage(text_of_unknown_option(option, shape_of(*one)), shape.name);
        }
    }
    const std::string called = shape.name.empty() ? "stillpoint" : "stillpoint " + shape.name;
    return report_usage(text_of("{} (see `{} --help`)", error.what(), called), shape.name);
}

void add_completion(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "completion", "Print the completion for a shell.");
    line.hide();
    const auto shell = std::make_shared<std::string>();
    line.positional("SHELL", *shell, true, "bash, zsh or fish");
    line.on_use([&app, shell] { return print_completion(*shell, shape_of(app), shapes_of_commands(app)); });
}

/// The whole of the command but for its last output.
int use(int argc, char** argv)
{
    CLI::App app{"Stillpoint: memory of a multi-threaded program that survives a crash.", "stillpoint"};
    Invocation invocation;
    app.set_version_flag("--version", std::string("stillpoint ") + sp_version());
    app.add_flag("-q,--quiet", invocation.quiet, "Print errors and results only.");
    app.require_subcommand(1);
    app.footer(help_footer(examples, exit_code_lines));
    add_run(app, invocation);
    add_standby(app, invocation);
    add_info(app, invocation);
    add_check(app, invocation);
    add_dump(app, invocation);
    add_diff(app, invocation);
    add_debug(app, invocation);
    add_copy(app, invocation);
    add_restore(app, invocation);
    add_salvage(app, invocation);
    add_grow(app, invocation);
    add_trim(app, invocation);
    add_compact(app, invocation);
    add_convert(app, invocation);
    add_doctor(app, invocation);
    add_stats(app, invocation);
    add_top(app, invocation);
    add_exporter(app, invocation);
    add_crashtest(app, invocation);
    add_bench(app, invocation);
    add_compilers(app, invocation);
    add_lint(app, invocation);
    add_tables(app, invocation);
    add_completion(app, invocation);
    try {
        if (const auto call = compiler_call(argc, argv)) {
            return run_compiler(*call);
        }
        if (const auto words = bench_call(argc, argv)) {
            return run_bench(*words);
        }
        app.parse(split_command(argc, argv, invocation), argv);
        return invocation.action();
    } catch (const CLI::ParseError& error) {
        return report_parse_error(app, error, split_command(argc, argv, invocation), argv);
    } catch (const std::exception& error) {  // no memory, or a defect: never a bare abort
        return report_error(exit_codes::defect, text_of("unexpected: {}", error.what()));
    }
}

}  // namespace
}  // namespace stillpoint::tool

int main(int argc, char** argv)
{
    using namespace stillpoint::tool;
    occupy_standard_descriptors();
    return end_of_output(use(argc, argv));
}
