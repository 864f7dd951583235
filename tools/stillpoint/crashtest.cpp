// `stillpoint crashtest`: the user's own program under kills and recoveries, with the user's own checker.

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "command.hpp"
#include "command_words.hpp"
#include "crash_rounds.hpp"
#include "json.hpp"
#include "os/clock.hpp"
#include "program.hpp"
#include "runtime_flags.hpp"
#include "media/open.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view crashtest_examples =
    "  stillpoint crashtest -- ./bank --transfers 1000000         100 kills, on a pool of its own\n"
    "  stillpoint crashtest --check './bank --verify' -- ./bank   and after each a checker, under the pool\n"
    "  stillpoint crashtest --moments persist --kills 500 -- ./bank\n"
    "  stillpoint crashtest --seconds 60 --seed 7 --max-ms 2000 --json -- ./server\n"
    "The checker runs on a copy of the pool; it must accept an empty pool. If program\n"
    "and checker note anything outside the pool, they do so in the folder that CRASHTEST_FOLDER names: it begins empty with\n"
    "each new pool. Options of `run` (--interval, --tracker, --medium, ...) hold for both.\n";

constexpr std::string_view crashtest_exit_codes =
    "  0 every kill was survived; 1 one was not: the program did not come back, the pool was not sound, the\n"
    "  checker failed, or an epoch was lost; 64 wrong usage; 65 a pool that was named is damaged or foreign; 69\n"
    "  not available here; 73 no space; 74 input/output error; 75 a process has the pool open; 77 no permission; 126 the program cannot be run durably; 127 there is no such program;\n"
    "  130 interrupted before anything failed.\n";

constexpr int exit_code_failed = 1;
constexpr int exit_code_signal = 128;

struct CrashTestArguments {
    CrashPlan plan;
    RuntimeFlags runtime;
    double kills = 0;  ///< 0: not said
    std::string check;
    bool has_seed = false;
    bool json = false;
};

std::string_view word_for(Moments moments)
{
    return moments == Moments::random ? "random" : moments == Moments::persist ? "persist" : "both";
}

/// The command that does the same kills again, up to and with the one that failed.
std::string command_to_repeat(const CrashTestArguments& arguments, const CrashFailure& failure)
{
    const CrashPlan& plan = arguments.plan;
    std::vector<std::string> words = {"stillpoint", "crashtest",
                                      "--seed",     std::to_string(plan.seed),
                                      "--kills",    std::to_string(failure.kills + 1),
                                      "--moments",  std::string(word_for(plan.moments)),
                                      "--min-ms",   text_of("{}", plan.min_ms),
                                      "--max-ms",   text_of("{}", plan.max_ms)};
    if (!arguments.check.empty()) {
        words.insert(words.end(), {"--check", arguments.check});
    }
    if (!plan.pool.empty()) {
        words.insert(words.end(), {"--pool", plan.pool});
    }
    for (const OptionRow& row : option_rows()) {
        const auto given = arguments.runtime.environment.find(row.environment_name());
        if (given != arguments.runtime.environment.end()) {
            words.insert(words.end(), {row.flag_name(), given->second});
        }
    }
    words.emplace_back("--");
    words.insert(words.end(), plan.program.begin(), plan.program.end());
    return shell_text(words);
}

void print_row(std::string_view name, const std::string& value) { print("  {:<34} {}\n", name, value); }

void print_summary(const CrashTestArguments& arguments, const CrashRounds& test)
{
    const CrashTestFigures& figures = test.figures();
    print("{}: {} kills in {:.1f} s, seed {}\n", arguments.plan.program.front(), figures.kills,
          static_cast<double>(figures.elapsed_ns) / 1e9, arguments.plan.seed);
    print_row("kills at random moments", std::to_string(figures.kills - figures.kills_at_points));
    print_row("kills at persist points", text_of("{}, {} distinct", figures.kills_at_points, figures.points.size()));
    print_row("runs that ended by themselves", std::to_string(figures.ended_by_itself));
    print_row("kills before the pool was made", std::to_string(figures.killed_without_pool));
    print_row("recoveries", text_of("{}, longest {:.1f} ms", figures.recoveries, static_cast<double>(figures.longest_recovery_ns) / 1e6));
    print_row("pools verified", text_of("{}, {} not sound", figures.pool_checks, figures.pool_failures));
    print_row("restarts that failed", std::to_string(figures.restart_failures));
    print_row("checker",
              arguments.check.empty() ? "none (--check)" : text_of("{} runs, {} failures", figures.checker_runs, figures.checker_failures));
    print_row("acknowledged epochs lost", text_of("{} (durable epoch seen before {} ends)", figures.epochs_lost, figures.epochs_observed));
}

void print_json(const CrashTestArguments& arguments, const CrashRounds& test)
{
    const CrashTestFigures& figures = test.figures();
    Json json;
    json.begin_object()
        .text("program", arguments.plan.program.front())
        .text("result", !test.failures().empty() ? "failed"
                        : interruption() != 0    ? "interrupted"
                                                 : "passed")
        .number("seed", arguments.plan.seed)
        .number("rounds", figures.rounds)
        .number("kills", figures.kills)
        .number("kills_at_random_moments", figures.kills - figures.kills_at_points)
        .number("kills_at_persist_points", figures.kills_at_points)
        .number("distinct_persist_points", figures.points.size())
        .number("ended_by_itself", figures.ended_by_itself)
        .number("killed_without_pool", figures.killed_without_pool)
        .number("recoveries", figures.recoveries)
        .number("longest_recovery_ns", figures.longest_recovery_ns)
        .number("pool_checks", figures.pool_checks)
        .number("pool_failures", figures.pool_failures)
        .number("restart_failures", figures.restart_failures)
        .number("checker_runs", figures.checker_runs)
        .number("checker_failures", figures.checker_failures)
        .number("epochs_observed", figures.epochs_observed)
        .number("epochs_lost", figures.epochs_lost)
        .number("elapsed_ns", figures.elapsed_ns)
        .begin_array("failures");
    for (const CrashFailure& failure : test.failures()) {
        json.begin_object()
            .number("round", failure.round)
            .number("kills", failure.kills)
            .text("what", failure.what)
            .text("kept_pool", failure.kept_pool)
            .text("command", command_to_repeat(arguments, failure))
            .end_object();
    }
    json.end_array();
    answer(std::move(json));
}

int report(const CrashTestArguments& arguments, const CrashRounds& test)
{
    arguments.json ? print_json(arguments, test) : print_summary(arguments, test);
    for (const CrashFailure& failure : test.failures()) {
        report_error(exit_code_failed, text_of("round {}: {}", failure.round, failure.what));
        if (!failure.kept_pool.empty()) {
            print_error("  the pool is kept: {}\n", failure.kept_pool);
        }
        print_error("  to repeat it: {}\n", command_to_repeat(arguments, failure));
    }
    if (!test.failures().empty()) {
        return exit_code_failed;
    }
    if (interruption() != 0) {
        print_error("stillpoint: interrupted; nothing had failed\n");
        return exit_code_signal + interruption();
    }
    if (test.figures().kills == 0) {
        return report_error(exit_code_failed, "the program was never killed: each run ended by itself before; give it more "
                                              "to do, or lower --min-ms and --max-ms");
    }
    return exit_codes::ok;
}

/// Empty, or what is wrong with the words of a program that is to be run durably.
tl::expected<void, Refusal> examine(const std::string& name)
{
    const auto path = find_program(name);
    if (!path) {
        return tl::unexpected(path.error());
    }
    return examine_program(*path);
}

std::string error_in(CrashTestArguments& arguments)
{
    CrashPlan& plan = arguments.plan;
    if (plan.program.empty()) {
        return "which program? stillpoint crashtest [OPTIONS] -- PROGRAM [ARGUMENTS]";
    }
    if (plan.program.front().starts_with("-")) {
        return text_of("crashtest has no option {} (see `stillpoint crashtest --help`)", plan.program.front());
    }
    if (plan.min_ms > plan.max_ms) {
        return text_of("--min-ms {} is more than --max-ms {}", plan.min_ms, plan.max_ms);
    }
    if (!arguments.check.empty()) {
        const auto words = words_of(arguments.check);
        if (!words || words->empty()) {
            return text_of("--check: {} is not a command: a quote is not closed, or there is no word", arguments.check);
        }
        plan.checker = *words;
    }
    return {};
}

int crashtest(CrashTestArguments& arguments, bool quiet)
{
    if (const std::string error = error_in(arguments); !error.empty()) {
        return report_error(exit_codes::usage, error);
    }
    CrashPlan& plan = arguments.plan;
    for (const std::vector<std::string>* const words : {&plan.program, &plan.checker}) {
        if (words->empty()) {
            continue;
        }
        if (const auto fit = examine(words->front()); !fit) {
            return report_error(fit.error().exit_code, fit.error().message);
        }
    }
    if (const char* const preload = std::getenv("LD_PRELOAD"); preload != nullptr && std::strstr(preload, "libstillpoint.so")) {
        return report_error(exit_codes::usage, "crashtest inside `stillpoint run`: start it without");
    }
    plan.environment.assign(arguments.runtime.environment.begin(), arguments.runtime.environment.end());
    plan.kills = arguments.kills > 0 ? arguments.kills : plan.seconds > 0 ? 1e15 : 100;
    plan.seed = arguments.has_seed ? plan.seed : os::wall_clock_ns() / 1000 % 1'000'000'000;
    plan.progress = !quiet && isatty(STDERR_FILENO) == 1;
    catch_interruption();
    CrashRounds test(plan);
    if (const auto ready = test.prepare(); !ready) {
        return report_failure(ready.error());
    }
    test.run();
    return report(arguments, test);
}

std::string take_moments(const std::string& text, Moments& moments)
{
    for (const Moments one : {Moments::random, Moments::persist, Moments::both}) {
        if (text == word_for(one)) {
            moments = one;
            return {};
        }
    }
    return text_of("{} is none of random, persist, both", text);
}

std::string take_seed(const std::string& text, CrashTestArguments& arguments)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), arguments.plan.seed);
    arguments.has_seed = true;
    return error == std::errc{} && end == text.data() + text.size() ? "" : text + " is not a whole number from 0";
}

void add_options(CommandLine& line, const std::shared_ptr<CrashTestArguments>& arguments)
{
    CrashPlan& plan = arguments->plan;
    line.option(
        "--pool", "PATH",
        [arguments](const std::string& text) {
            arguments->plan.pool = text;
            if (lies_in_no_file(text)) {
                return text_of("{} is in Ceph; crashtest copies the pool's file at each kill, and needs a file", text);
            }
            return std::string(text.empty() ? "the path of the pool is empty" : "");
        },
        "Pool to use; created if it does not exist, and kept. Default: one in a temporary folder, removed afterwards.");
    line.option(
        "--check", "CMD",
        [arguments](const std::string& text) {
            arguments->check = text;
            return std::string(text.empty() ? "the command is empty" : "");
        },
        "Run CMD under a copy of the pool after each kill; exit code 0 means that the state is right.");
    line.number("--check-timeout", plan.check_seconds, 0.01, 86400.0, "SECONDS", "Time limit for one run of the checker. Default 60.");
    line.number("--kills", arguments->kills, 1, 1e9, "NUMBER", "Number of kills. Default 100, or no limit with --seconds.");
    line.number("--seconds", plan.seconds, 0.1, 1e7, "SECONDS", "Stop after this time.");
    line.option(
        "--seed", "NUMBER", [arguments](const std::string& text) { return take_seed(text, *arguments); },
        "Choose the same moments as the run that printed this seed.");
    line.option(
        "--moments", "WORD", [arguments](const std::string& text) { return take_moments(text, arguments->plan.moments); },
        "Kill at random moments, at persist points (docs/internals/fault-injection.md), or both. Default both.");
    line.number("--min-ms", plan.min_ms, 0, 1e7, "MS", "Earliest time of a random kill in a run. Default 0.");
    line.number("--max-ms", plan.max_ms, 1, 1e7, "MS", "Latest time at which a run is killed. Default 500.");
    line.flag("--keep-going", plan.keep_going, "Do not stop at the first failure: keep its pool, continue with a new one.");
    line.json_flag(arguments->json, "Print one JSON object.");
}

}  // namespace

void add_crashtest(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "crashtest",
                     "Kill a program again and again, recover, and check: stillpoint crashtest [OPTIONS] -- PROGRAM [ARGUMENTS...]");
    const auto arguments = std::make_shared<CrashTestArguments>();
    add_options(line, arguments);
    const std::shared_ptr<RuntimeFlags> runtime(arguments, &arguments->runtime);
    add_runtime_flags(line, runtime, [](const OptionRow& row) { return row.name != "pool"; });
    line.ends_with_a_command();
    line.footer(crashtest_examples, crashtest_exit_codes);
    line.on_use([line, arguments, &invocation] {
        const bool quiet = invocation.quiet || arguments->runtime.flags[find_option("quiet")];
        arguments->plan.program = line.command();
        return crashtest(*arguments, quiet);
    });
}

}  // namespace stillpoint::tool
