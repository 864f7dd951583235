// stillpoint: runs programs durably, and looks into their pools. One file per subcommand.

#include <cstdio>

#include <CLI/CLI.hpp>

#include "api/session.hpp"
#include "bench.hpp"
#include "command.hpp"
#include "compiler.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::tool {

int report_error(int exit_code, std::string_view text)
{
    print_error("stillpoint: error: {}\n", text);
    return exit_code;
}

int report_failure(const Failure& failure) { return report_error(exit_code_for(failure.code), printable(failure.text())); }

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

}  // namespace

CommandLine::CommandLine(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& sentence)
    : command_(app.add_subcommand(name, sentence)), invocation_(&invocation)
{
}

void CommandLine::positional(const std::string& name, std::string& value, bool required, const std::string& sentence)
{
    command_->add_option(name, value, sentence)->required(required)->type_name("");
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

void CommandLine::option(const std::string& names, const std::string& type, std::function<std::string(const std::string&)> take,
                         const std::string& sentence)
{
    const auto check = [take = std::move(take), names](const std::string& text) {
        if (const std::string error = take(text); !error.empty()) {
            throw CLI::ValidationError(names.substr(0, names.find(',')), error);
        }
    };
    in_section(command_->add_option_function<std::string>(names, check, sentence)->type_name(type), section_);
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

void CommandLine::on_use(std::function<int()> action)
{
    command_->final_callback([invocation = invocation_, action = std::move(action)] { invocation->action = action; });
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

/// Takes the program's command line, after the "--" of `run`, `crashtest` and `lint`, out of ours: CLI11 would look for positional
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
        takes_a_command = takes_a_command || word == "run" || word == "crashtest" || word == "lint";
        if (!takes_a_command && !word.starts_with("-")) {
            break;  // another subcommand
        }
    }
    return argc;
}

/// Turns what CLI11 found wrong into one line and an exit code.
int report_usage(const CLI::App& app, const CLI::ParseError& error)
{
    if (error.get_exit_code() == 0) {
        return app.exit(error);  // --help or --version: CLI11 prints them
    }
    const CLI::App* used = &app;
    std::string name = "stillpoint";
    for (const CLI::App* subcommand : app.get_subcommands()) {
        used = subcommand;
        name += " " + used->get_name();
    }
    return report_error(exit_codes::usage, text_of("{} (see `{} --help`)", error.what(), name));
}

}  // namespace
}  // namespace stillpoint::tool

int main(int argc, char** argv)
{
    using namespace stillpoint::tool;
    CLI::App app{"Stillpoint: memory of a multi-threaded program that survives a crash.", "stillpoint"};
    Invocation invocation;
    app.set_version_flag("--version", std::string("stillpoint ") + sp_version());
    app.add_flag("-q,--quiet", invocation.quiet, "Print errors and results only.");
    app.require_subcommand(1);
    app.footer(help_footer(examples, exit_code_lines));
    add_run(app, invocation);
    add_info(app, invocation);
    add_check(app, invocation);
    add_dump(app, invocation);
    add_compact(app, invocation);
    add_convert(app, invocation);
    add_doctor(app, invocation);
    add_stats(app, invocation);
    add_crashtest(app, invocation);
    add_bench(app, invocation);
    add_compilers(app, invocation);
    add_lint(app, invocation);
    add_tables(app, invocation);
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
        return report_usage(app, error);
    } catch (const std::exception& error) {  // no memory, or a defect: never a bare abort
        return report_error(70, text_of("unexpected: {}", error.what()));
    }
}
