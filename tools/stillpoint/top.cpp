// `stillpoint top`: the programs that have pools open, one line each, again and again.

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "command.hpp"
#include "os/clock.hpp"
#include "terminal_screen.hpp"
#include "watched_pools.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view top_examples = "  stillpoint top bank.pool\n"
                                          "  stillpoint top '/srv/pools/*.pool'      also pools that are made later\n"
                                          "  stillpoint top --once bank.pool         one table, with means since the program began\n"
                                          "q or Ctrl-C ends it. Where the output is not a terminal, table after table is printed.\n";

constexpr std::string_view top_exit_codes = "  0 ended by q or Ctrl-C, or printed; 64 wrong usage; 74 input/output error\n";

struct TopArguments {
    std::vector<std::string> pools;
    double seconds = 1;
    bool once = false;
};

/// The figures that rates are made of, at one moment.
struct Sample {
    pid_t process = 0;
    std::uint64_t started_ns = 0;
    std::uint64_t at_ns = 0;
    std::uint64_t checkpoints = 0;
    std::uint64_t bytes_written = 0;
};

struct Rates {
    double checkpoints;
    double mib_written;
};

/// Since the sample before, where that is of the same opening; else since the program began.
Rates rates_of(const Sample& now, const Sample* before)
{
    const bool has_before = before != nullptr && before->process == now.process && before->started_ns == now.started_ns &&
                            before->checkpoints <= now.checkpoints && before->bytes_written <= now.bytes_written;
    const std::uint64_t begun_ns = has_before ? before->at_ns : now.started_ns;
    const double seconds = std::max(1e-3, static_cast<double>(now.at_ns - std::min(begun_ns, now.at_ns)) / 1e9);
    const std::uint64_t checkpoints = now.checkpoints - (has_before ? before->checkpoints : 0);
    const std::uint64_t bytes = now.bytes_written - (has_before ? before->bytes_written : 0);
    return {static_cast<double>(checkpoints) / seconds, static_cast<double>(bytes) / seconds / (1024.0 * 1024.0)};
}

std::string time_text(std::uint64_t ns)
{
    const auto value = static_cast<double>(ns);
    return ns < 10'000'000      ? text_of("{:.2f} ms", value / 1e6)
           : ns < 1'000'000'000 ? text_of("{:.0f} ms", value / 1e6)
                                : text_of("{:.1f} s", value / 1e9);
}

/// The end of a path tells more than its beginning.
std::string shortened(const std::string& text, std::size_t length)
{
    return text.size() <= length ? text : "..." + text.substr(text.size() - (length - 3));
}

std::string cell_of_age(const Statistics& page, std::uint64_t now_ns)
{
    const std::uint64_t newest_ns = page.last_durable_ns.load(std::memory_order_relaxed);
    return newest_ns == 0 || newest_ns > now_ns ? "-" : time_text(now_ns - newest_ns);
}

class Table {
public:
    [[nodiscard]] std::string of(const std::vector<WatchedPool>& pools)
    {
        std::string text = text_of("{:<28} {:<15} {:>8} {:<9} {:>9} {:>8} {:>7} {:>9} {:>9} {:>9} {:>8} {:>8} {:>5}\n", "pool", "program",
                                   "process", "engine", "epoch", "age", "ckpt/s", "stop", "stop p99", "stop max", "pages", "MiB/s",
                                   "error");
        std::map<std::string, Sample> samples;
        for (const WatchedPool& pool : pools) {
            text += pool.view ? row_of(pool, samples) : text_of("{:<28} {}\n", shortened(printable(pool.path), 28), problem_of(pool));
        }
        samples_ = std::move(samples);
        return text;
    }

private:
    static std::string problem_of(const WatchedPool& pool)
    {
        return pool.problem.empty() ? "no program has it open" : printable(pool.problem);
    }

    std::string row_of(const WatchedPool& pool, std::map<std::string, Sample>& samples) const
    {
        const StatisticsView& view = *pool.view;
        const auto value = [&view](std::atomic<std::uint64_t> Statistics::* word) {
            return ((*view).*word).load(std::memory_order_acquire);
        };
        const std::uint64_t now_ns = os::monotonic_ns();
        const Sample now{pool.process, view->started_ns, now_ns, value(&Statistics::checkpoints), value(&Statistics::bytes_written)};
        const auto before = samples_.find(pool.path);
        const Rates rates = rates_of(now, before == samples_.end() ? nullptr : &before->second);
        samples[pool.path] = now;
        return text_of("{:<28} {:<15} {:>8} {:<9} {:>9} {:>8} {:>7.1f} {:>9} {:>9} {:>9} {:>8} {:>8.1f} {:>5}\n",
                       shortened(printable(pool.path), 28), shortened(printable(view.program_name()), 15), pool.process,
                       printable(view.engine_name()), value(&Statistics::epoch), cell_of_age(*view, now_ns), rates.checkpoints,
                       time_text(value(&Statistics::stop_ns_last)), time_text(value(&Statistics::stop_ns_p99)),
                       time_text(value(&Statistics::stop_ns_max)), value(&Statistics::dirty_pages_last), rates.mib_written,
                       value(&Statistics::last_error) == 0 ? "-" : std::to_string(value(&Statistics::last_error)));
    }

    std::map<std::string, Sample> samples_;
};

int draw(const TopArguments& arguments)
{
    Table table;
    const TerminalScreen screen;
    do {
        screen.draw(table.of(look_at_pools(arguments.pools)));
    } while (!output_is_broken() && screen.wait(arguments.seconds) == TerminalScreen::Wish::redraw);
    return exit_codes::ok;
}

int top(const TopArguments& arguments)
{
    if (!arguments.once && TerminalScreen::is_possible()) {
        return draw(arguments);
    }
    Table table;
    while (true) {
        print("{}", table.of(look_at_pools(arguments.pools)));
        if (arguments.once || output_is_broken()) {
            return exit_codes::ok;
        }
        std::this_thread::sleep_for(std::chrono::duration<double>(arguments.seconds));
        print("\n");
    }
}

}  // namespace

void add_top(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "top", "Show the programs that have pools open, again and again.");
    const auto arguments = std::make_shared<TopArguments>();
    line.positionals("POOL", arguments->pools, "Paths of pool files, and patterns for them in quotes.");
    line.flag("--once", arguments->once, "Print one table and end.");
    line.number("--every", arguments->seconds, 0.05, 3600.0, "SECONDS", "Time between two tables. Default 1.");
    line.footer(top_examples, top_exit_codes);
    line.on_use([arguments] { return top(*arguments); });
}

}  // namespace stillpoint::tool
