// `stillpoint run`: prepares the environment of a program and becomes it. No process of ours is left,
// so signals, exit code, terminal and process id are the program's own.

#include <cstdlib>
#include <string>
#include <unistd.h>

#include "command.hpp"
#include "os/log.hpp"
#include "runtime/pool_owner.hpp"
#include "runtime_flags.hpp"
#include "start.hpp"
#include "type_descriptions.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view run_examples =
    "  stillpoint run --pool bank.pool -- ./bank --threads 2\n"
    "  stillpoint run --pool bank.pool --interval 20ms --tracker mprotect -- ./bank\n"
    "  stillpoint run --pool /dev/shm/x.pool --durability process --pool-size 1G -- ./bank\n"
    "Every option has an environment variable as well: --interval-ms is STILLPOINT_INTERVAL_MS; the\n"
    "flag wins. A pool that exists keeps its engine, durability and sizes; another value is an error.\n";

constexpr std::string_view run_exit_codes =
    "  the program's own, once it runs. Before that: 64 wrong usage, or a run inside a run; 65 the\n"
    "  pool is damaged, foreign, newer or another engine's; 66 no folder for it; 69 not available on\n"
    "  this system; 71 no memory; 73 no space; 74 input/output error; 75 another process has the pool open; 77 no\n"
    "  permission; 126 the program cannot be run durably; 127 there is no such program.\n";

int run(const RuntimeFlags& arguments, std::vector<std::string> command)
{
    const auto start = prepare_start(arguments, command, "run");
    if (!start) {
        return report_error(start.error().exit_code, start.error().message);
    }
    if (start->options.pool.empty() && !start->options.quiet) {
        os::log(os::Severity::warning, "no --pool is named: {} runs volatile, nothing will survive", command.front());
    }
    state_types(start->options.pool.empty() ? std::string() : start->program);
    // The library says in this process, and not in those it starts, what is wrong with the pool before anything runs.
    setenv(run_variable, std::to_string(getpid()).c_str(), 1);
    return become_program(start->program, std::move(command));
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "run",
                     "Run a program durably, its durable memory kept in a pool: stillpoint run [OPTIONS] -- PROGRAM [ARGUMENTS...]");
    const auto arguments = std::make_shared<RuntimeFlags>();
    add_runtime_flags(line, arguments, [](const OptionRow&) { return true; });
    line.ends_with_a_command();
    line.footer(run_examples, run_exit_codes);
    line.on_use([line, arguments, &invocation] {
        arguments->settle(invocation.quiet);
        return run(*arguments, line.command());
    });
}

}  // namespace stillpoint::tool
