// `stillpoint run`: prepares the environment of a program and becomes it. No process of ours stays
// behind, so signals, exit code, terminal and process id are the program's own.

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "command.hpp"
#include "installation.hpp"
#include "os/log.hpp"
#include "program.hpp"
#include "runtime_flags.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view examples =
    "  stillpoint run --pool bank.pool -- ./bank --threads 2\n"
    "  stillpoint run --pool bank.pool --interval 20ms --tracker mprotect -- ./bank\n"
    "  stillpoint run --pool /dev/shm/x.pool --durability process --pool-size 1G -- ./bank\n"
    "Every option has an environment variable as well: --interval-ms is STILLPOINT_INTERVAL_MS; the\n"
    "flag wins. A pool that exists keeps its engine, durability and sizes.\n";

constexpr std::string_view exit_code_lines =
    "  the program's own, once it runs. Before that: 64 wrong usage, or a run inside a run; 65 the\n"
    "  pool is damaged, foreign, newer or another engine's; 69 not available on this system; 71 no\n"
    "  memory; 73 no space; 74 input/output error; 75 another process has the pool open; 77 no\n"
    "  permission; 126 the program cannot be run durably; 127 there is no such program.\n";

bool preloaded(std::string_view list)
{
    return list.find("libstillpoint.so") != std::string_view::npos;
}

/// The library beside this executable. The folder is resolved but the name is kept: the loader knows the
/// library by it.
std::string find_library()
{
    const std::string folder = library_folder();
    return folder.empty() ? folder : text_of("{}/{}", folder, library_name);
}

void prepend(const char* variable, const std::string& value)
{
    const char* present = std::getenv(variable);
    const bool empty = present == nullptr || *present == '\0';
    setenv(variable, empty ? value.c_str() : text_of("{}:{}", value, present).c_str(), 1);
}

/// Puts the library into the environment. The loader splits LD_PRELOAD at spaces and colons, and
/// LD_LIBRARY_PATH at colons and semicolons; both expand "$".
tl::expected<void, Refusal> set_preload()
{
    const std::string library = find_library();
    if (library.empty()) {
        return tl::unexpected(Refusal{exit_codes::unavailable,
                                      text_of("{} is missing beside {}: install Stillpoint again, or build "
                                                  "it whole (make)", library_name, own_folder())});
    }
    if (library.find_first_of(":;$") != std::string::npos) {
        return tl::unexpected(Refusal{exit_codes::unavailable,
                                      text_of("{}: the dynamic loader cannot take a path with ':', ';' or '$'. "
                                                  "Move Stillpoint to another folder", library)});
    }
    if (library.find_first_of(" \t\n") == std::string::npos) {
        prepend("LD_PRELOAD", library);
        return {};
    }
    prepend("LD_LIBRARY_PATH", library.substr(0, library.rfind('/')));
    prepend("LD_PRELOAD", std::string(library_name));
    return {};
}

/// Empty: there is no such thing to run, and the error says why.
std::string error_in(const std::vector<std::string>& command)
{
    if (command.empty()) {
        return "which program? stillpoint run [OPTIONS] -- PROGRAM [ARGUMENTS]";
    }
    if (command.front().starts_with("-")) {
        return text_of("run has no option {} (see `stillpoint run --help`); the program's own options come after its name",
                       command.front());
    }
    return {};
}

void set_environment(const RuntimeFlags& arguments)
{
    for (const auto& [name, value] : arguments.environment) {
        setenv(name.c_str(), value.c_str(), 1);
    }
    // The library sets it to the process that opens the pool. What is left of an earlier run would keep this
    // program out.
    unsetenv("STILLPOINT_OWNER");
}

int run(const RuntimeFlags& arguments, std::vector<std::string> command)
{
    const char* preload = std::getenv("LD_PRELOAD");
    if (preload != nullptr && preloaded(preload)) {
        return report_error(exit_codes::usage,
                            "nested `stillpoint run`: this process runs under one already, and one program has one "
                            "pool. Start the inner program without `stillpoint run`, or unset LD_PRELOAD");
    }
    if (const std::string error = error_in(command); !error.empty()) {
        return report_error(exit_codes::usage, error);
    }
    const auto program = find_program(command.front());
    if (!program) {
        return report_error(program.error().exit_code, program.error().message);
    }
    if (const auto fit = examine_program(*program); !fit) {
        return report_error(fit.error().exit_code, fit.error().message);
    }
    if (const auto set = set_preload(); !set) {
        return report_error(set.error().exit_code, set.error().message);
    }
    set_environment(arguments);
    const auto options = options_from_environment();
    if (!options) {
        return report_failure(options.error());
    }
    if (const auto fit = check_options(*options); !fit) {
        return report_failure(fit.error());
    }
    if (options->pool.empty() && !options->quiet) {
        os::log(os::Severity::warning, "no --pool is named: {} runs volatile, nothing will survive",
                command.front());
    }
    std::vector<char*> pointers;
    for (std::string& word : command) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    execv(program->c_str(), pointers.data());
    return report_error(exit_codes::not_runnable,
                        text_of("cannot run {}: {}", *program, std::strerror(errno)));
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation)
{
    CommandLine line(
        app, invocation, "run",
        "Run a program durably, its durable memory kept in a pool: stillpoint run [OPTIONS] -- PROGRAM [ARGUMENTS...]");
    const auto arguments = std::make_shared<RuntimeFlags>();
    add_runtime_flags(line, arguments, [](const OptionRow&) { return true; });
    line.ends_with_a_command();
    line.footer(examples, exit_code_lines);
    line.on_use([line, arguments, &invocation] {
        arguments->settle(invocation.quiet);
        return run(*arguments, line.command());
    });
}

}  // namespace stillpoint::tool
