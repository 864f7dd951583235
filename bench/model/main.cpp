// commit_model: what the commit protocols of SPHT's evaluation reach on 1 to 64 threads, by simulation.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "descriptions.hpp"
#include "run.hpp"
#include "shown.hpp"

namespace {

using namespace bench::model;

constexpr const char* examples = R"(examples:
  commit_model                                             all systems on vacation_low, the paper's machine
  commit_model --workload tpcc --threads 1,8,16,32         another workload, some numbers of threads
  commit_model --machine measured_here --system SPHT-NL    one system, with costs that model_costs has measured
  commit_model --set flush_again_ns=800                    what if markers took longer?
  commit_model --validate measured.json                    the model beside throughputs that were measured at 1 and 2 threads
  commit_model --json -                                    all figures of the runs as JSON
)";

}  // namespace

int main(int count, char** words)
{
    Settings settings;
    CLI::App app("Throughput of persistent-memory commit protocols by simulation: SPHT and the systems it is compared with.");
    app.footer(examples);
    app.add_option("--machine", settings.machine, "description of a machine: a name of bench/model/machines, or a file")
        ->capture_default_str();
    app.add_option("--set", settings.changes, "another value for a cost of the machine, name=value; several times or separated by commas")
        ->delimiter(',');
    app.add_option("--workload", settings.workload, "description of a workload: a name of bench/model/workloads, or a file")
        ->capture_default_str();
    app.add_option("--system", settings.systems, "systems, separated by commas (default: all)")->delimiter(',');
    app.add_option("--threads", settings.threads, "numbers of threads, separated by commas (default: 1 to 64)")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    app.add_option("--transactions", settings.transactions, "transactions of a run, of all threads together")
        ->capture_default_str()
        ->check(CLI::Range(1000, 1'000'000'000));
    app.add_option("--seed", settings.seed, "of the random numbers: equal seeds give equal results")->capture_default_str();
    app.add_option("--json", settings.json, "write the results as JSON; - for standard output, in place of the tables");
    app.add_option(
        "--validate", settings.validate,
        "file of measured throughputs: {\"workload\": NAME, \"machine\": NAME, \"changes\": {COST: value}, \"measured\": {SYSTEM: [at 1 "
        "thread, at 2]}}");
    app.add_flag("--limits", settings.shows_limits, "print what limits each system's scaling (SPHT, Table 1)");
    CLI11_PARSE(app, count, words);
    try {
        return show(settings);
    } catch (const std::exception& error) {
        fmt::print(stderr, "commit_model: {}\n", error.what());
        return 1;
    }
}
