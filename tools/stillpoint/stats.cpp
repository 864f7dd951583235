// `stillpoint stats`: reads the shared page of the program that has a pool open. It stops nothing and
// asks the program for nothing.

#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include "api/registry.hpp"
#include "api/statistics.hpp"
#include "command.hpp"
#include "json.hpp"
#include "prometheus.hpp"
#include "media/open.hpp"
#include "stillpoint/error.h"
#include "watched_pools.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view stats_examples = "  stillpoint stats bank.pool\n"
                                            "  stillpoint stats --watch 1 bank.pool           again every second, until the program ends\n"
                                            "  stillpoint stats --json bank.pool\n"
                                            "  stillpoint stats --prometheus bank.pool        for a text file collector\n"
                                            "docs/guide/statistics.md explains every figure.\n";

constexpr std::string_view stats_exit_codes =
    "  0 printed; 64 wrong usage; 65 not a pool, or its program runs with another version; 66 no such file;\n"
    "  69 no process has the pool open, or it cannot be seen from here; 74 input/output error;\n"
    "  77 no permission\n";

struct StatsArguments {
    std::string path;
    bool json = false;
    bool prometheus = false;
    double watch_seconds = 0;
};

/// A value as a person reads it: times in ms, sizes in units, errors in words.
std::string value_text(const StatisticRow& row, std::uint64_t value)
{
    if (row.unit == "ns") {
        return text_of("{:.3f} ms", static_cast<double>(value) / 1e6);
    }
    if (row.unit == "bytes" && value >= 1024 * 1024) {
        return text_of("{:.1f} MiB", static_cast<double>(value) / (1024.0 * 1024.0));
    }
    if (row.unit == "address") {
        return value == 0 ? "none" : text_of("{:#x}", value);
    }
    if (row.unit == "sp_error") {
        return value == 0 ? "none" : sp_error_string(static_cast<int>(value));
    }
    return row.unit.empty() ? std::to_string(value) : text_of("{} {}", value, row.unit);
}

/// The engine's, about this run; empty: none.
std::string advice_of(const StatisticsView& view)
{
    for (const EngineDriver& driver : every_engine_driver()) {
        if (driver.advice != nullptr && driver.format.name == view.engine_name()) {
            return driver.advice(*view);
        }
    }
    return {};
}

void print_text(const StatisticsView& view, pid_t process)
{
    print("{} (process {}), pool {}\n", printable(view.program_name()), process, printable(view.pool_path()));
    const std::vector<std::uint64_t> values = read_statistics(*view);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const StatisticRow& row = statistic_rows()[i];
        if (!row.engine.empty() && row.engine != view.engine_name()) {
            continue;
        }
        print("{:<24} {:>18}  {}\n", row.name, value_text(row, values[i]), row.sentence);
    }
    if (const std::string text = advice_of(view); !text.empty()) {
        print("slower than it need be: {}\n", text);
    }
}

void print_json(const StatisticsView& view, pid_t process)
{
    Json json;
    json.begin_object().text("program", view.program_name()).number("process", process).text("pool", view.pool_path());
    const std::vector<std::uint64_t> values = read_statistics(*view);
    for (std::size_t i = 0; i < values.size(); ++i) {
        json.number(statistic_rows()[i].name, values[i]);
    }
    json.text("advice", advice_of(view));
    print("{}\n", json.end_object().str());
}

int report_nobody(const std::string& path)
{
    return report_error(exit_codes::unavailable,
                        text_of("{}: no process has the pool open, or it runs in another container; start the program with `stillpoint "
                                "run --pool {} -- PROGRAM`",
                                path, path));
}

int stats(const StatsArguments& arguments)
{
    if (arguments.prometheus && (arguments.json || arguments.watch_seconds > 0)) {
        return report_error(exit_codes::usage, "--prometheus goes with neither --json nor --watch; for figures again and again there is "
                                               "`stillpoint exporter`");
    }
    struct stat facts{};
    const bool is_file = !lies_in_no_file(arguments.path);
    if (is_file && stat(arguments.path.c_str(), &facts) != 0) {
        return errno == EACCES ? report_error(exit_codes::no_permission, text_of("{}: {}", arguments.path, std::strerror(errno)))
                               : report_error(exit_codes::no_input, text_of("{}: there is no such file", arguments.path));
    }
    if (is_file && !S_ISREG(facts.st_mode)) {
        return report_error(exit_codes::data_error, text_of("{} is not a regular file; name a pool file", arguments.path));
    }
    auto pool = look_at_pool(arguments.path);
    if (!pool) {  // Another process may have the pool locked for a moment only: to check it, to look into it, to open it.
        return pool.error().code == SP_E_NOT_OPEN ? report_nobody(arguments.path) : report_failure(pool.error());
    }
    if (arguments.prometheus) {
        std::vector<WatchedPool> one;
        one.push_back(std::move(*pool));
        print("{}", exposition_of(one));
        return exit_codes::ok;
    }
    const StatisticsView& view = *pool->view;
    const pid_t process = pool->process;
    do {
        arguments.json ? print_json(view, process) : print_text(view, process);
        if (arguments.watch_seconds > 0 && !output_is_broken()) {
            std::this_thread::sleep_for(std::chrono::duration<double>(arguments.watch_seconds));
            if (!arguments.json) {
                print("\n");
            }
        }
    } while (arguments.watch_seconds > 0 && !output_is_broken() && lock_holder_pid(arguments.path) == process);
    return exit_codes::ok;
}

}  // namespace

void add_stats(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "stats", "Print live figures of the program that has a pool open.");
    const auto arguments = std::make_shared<StatsArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file.");
    line.json_flag(arguments->json, "Print one JSON object; with --watch, one a line.");
    line.flag("--prometheus", arguments->prometheus, "Print them in the text format of Prometheus.");
    line.number("--watch", arguments->watch_seconds, 0.01, 86400.0, "SECONDS", "Print again every SECONDS until the program ends.");
    line.footer(stats_examples, stats_exit_codes);
    line.on_use([arguments] { return stats(*arguments); });
}

}  // namespace stillpoint::tool
