#include "shown.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

#include "descriptions.hpp"
#include "json_value.hpp"
#include "run.hpp"

namespace bench::model {
namespace {

/// A name of a folder of descriptions, or a path.
std::string path_of(const std::string& word, const char* folder)
{
    const bool is_path = word.find('/') != std::string::npos || word.ends_with(".json");
    return is_path ? word : fmt::format("{}/{}/{}.json", BENCH_MODEL_DESCRIPTIONS, folder, word);
}

std::vector<ProtocolKind> chosen(const std::vector<std::string>& names)
{
    if (names.empty()) {
        return all_protocols();
    }
    std::vector<ProtocolKind> found;
    for (const std::string& name : names) {
        const auto kind = std::ranges::find(all_protocols(), name, &ProtocolKind::name);
        if (kind == all_protocols().end()) {
            std::string known;
            for (const ProtocolKind& one : all_protocols()) {
                known += fmt::format(" {}", one.name);
            }
            throw std::runtime_error(fmt::format("no system is named {}; there are{}", name, known));
        }
        found.push_back(*kind);
    }
    return found;
}

using Results = std::vector<std::vector<RunResult>>;  // by system, by number of threads

void print_table(const char* title, const Results& results, const std::vector<int>& threads, double (*value)(const RunResult&),
                 const char* format)
{
    fmt::print("{}\n{:<10}", title, "threads");
    for (const int one : threads) {
        fmt::print("{:>8}", one);
    }
    fmt::print("\n");
    for (const auto& of_system : results) {
        fmt::print("{:<10}", of_system.front().system);
        for (const RunResult& one : of_system) {
            fmt::print("{:>8}", fmt::format(fmt::runtime(format), value(one)));
        }
        fmt::print("\n");
    }
    fmt::print("\n");
}

void print_tables(const Results& results, const std::vector<int>& threads)
{
    print_table(
        "millions of transactions a second", results, threads, [](const RunResult& one) { return one.transactions_per_s / 1e6; }, "{:.3f}");
    print_table(
        "time in commit phase, % of time inside transactions", results, threads,
        [](const RunResult& one) { return 100 * one.share_inside(Activity::commit_phase); }, "{:.0f}");
    print_table(
        "time in aborted attempts, %", results, threads, [](const RunResult& one) { return 100 * one.share_inside(Activity::aborted); },
        "{:.0f}");
    print_table(
        "time in or waiting for the single global lock, %", results, threads,
        [](const RunResult& one) { return 100 * one.share_inside(Activity::fallback); }, "{:.0f}");
    print_table("aborted attempts, % of attempts", results, threads, [](const RunResult& one) { return 100 * one.abort_rate(); }, "{:.1f}");
}

std::string json_of(const Settings& settings, const Results& results)
{
    constexpr const char* activity_names[] = {"outside", "committed", "aborted", "lock", "commit_phase"};
    constexpr const char* abort_names[] = {"conflict", "capacity", "lock", "clock", "validation"};
    std::string out = fmt::format("{{\"format\": \"stillpoint-commit-model\", \"machine\": {}, \"workload\": {}, \"transactions\": {}, "
                                  "\"seed\": {}, \"runs\": [",
                                  quoted(settings.machine), quoted(settings.workload), settings.transactions, settings.seed);
    const char* separator = "\n";
    for (const auto& of_system : results) {
        for (const RunResult& one : of_system) {
            out += fmt::format(
                "{}{{\"system\": {}, \"threads\": {}, \"transactions_per_s\": {:.1f}, \"abort_rate\": {:.6f}, \"shares\": {{", separator,
                quoted(one.system), one.threads, one.transactions_per_s, one.abort_rate());
            for (std::size_t i = 0; i < activities; ++i) {
                out += fmt::format("{}\"{}\": {:.6f}", i == 0 ? "" : ", ", activity_names[i], one.share(static_cast<Activity>(i)));
            }
            out += fmt::format("}}, \"attempts\": {}, \"committed\": {}, \"fallbacks\": {}, \"flushes\": {}, \"aborted\": {{",
                               one.total.attempts, one.total.committed, one.total.fallbacks, one.total.flushes);
            for (std::size_t i = 0; i < aborts; ++i) {
                out += fmt::format("{}\"{}\": {}", i == 0 ? "" : ", ", abort_names[i], one.total.aborted[i]);
            }
            out += "}}";
            separator = ",\n";
        }
    }
    return out + "\n]}\n";
}

Machine machine_of(const Settings& settings, const std::string& name)
{
    Machine machine = read_machine(path_of(name, "machines"));
    for (const std::string& change : settings.changes) {
        change_machine(machine, change);
    }
    return machine;
}

int show_limits()
{
    fmt::print("{:<10}{:>16}{:>16}{:>16}{:>16}\n", "", "clock in", "longer", "sequential", "sequential");
    fmt::print("{:<10}{:>16}{:>16}{:>16}{:>16}\n", "system", "transactions", "vulnerability", "durability", "log replay");
    const auto word = [](bool is_so) { return is_so ? "yes" : "no"; };
    for (const ProtocolKind& kind : all_protocols()) {
        if (kind.limits) {
            fmt::print("{:<10}{:>16}{:>16}{:>16}{:>16}\n", kind.name, word(kind.limits->global_clock_in_transactions),
                       word(kind.limits->longer_vulnerability), word(kind.limits->sequential_durability),
                       word(kind.limits->sequential_replay));
        }
    }
    return 0;
}

/// The model beside measurements, and its error for each.
int show_validation(const Settings& settings)
{
    const JsonValue file = read_json_file(settings.validate);
    Machine machine = machine_of(settings, file.member("machine").text("machine"));
    for (const auto& [name, value] : file.member("changes").object("changes")) {
        change_machine(machine, fmt::format("{}={}", name, value.number(name)));
    }
    const Workload workload = read_workload(path_of(file.member("workload").text("workload"), "workloads"));
    fmt::print("{:<10}{:>9}{:>16}{:>16}{:>9}\n", "system", "threads", "measured, 1/s", "model, 1/s", "error");
    double largest = 0;
    for (const auto& [system, rates] : file.member("measured").object("measured")) {
        const ProtocolKind kind = chosen({system}).front();
        int threads = 0;
        for (const JsonValue& rate : rates.array(system)) {
            ++threads;
            const double measured = rate.number("a throughput");
            const RunResult result = run_model(kind, machine, workload, threads, settings.transactions, settings.seed);
            if (measured <= 0) {
                throw std::runtime_error(fmt::format("{}: {} has a throughput that is not positive", settings.validate, system));
            }
            const double error = result.transactions_per_s / measured - 1;
            largest = std::max(largest, std::abs(error));
            fmt::print("{:<10}{:>9}{:>16.0f}{:>16.0f}{:>8.1f}%\n", system, threads, measured, result.transactions_per_s, 100 * error);
        }
    }
    fmt::print("largest error {:.1f}%\n", 100 * largest);
    return 0;
}

}  // namespace

int show(const Settings& settings)
{
    if (settings.shows_limits) {
        return show_limits();
    }
    if (!settings.validate.empty()) {
        return show_validation(settings);
    }
    const Machine machine = machine_of(settings, settings.machine);
    const Workload workload = read_workload(path_of(settings.workload, "workloads"));
    Results results;
    for (const ProtocolKind& kind : chosen(settings.systems)) {
        results.emplace_back();
        for (const int threads : settings.threads) {
            results.back().push_back(run_model(kind, machine, workload, threads, settings.transactions, settings.seed));
        }
    }
    if (settings.json != "-") {
        print_tables(results, settings.threads);
    }
    if (settings.json == "-") {
        fmt::print("{}", json_of(settings, results));
    } else if (!settings.json.empty()) {
        std::ofstream file(settings.json, std::ios::binary);
        file << json_of(settings, results);
        if (!file.flush()) {
            throw std::runtime_error(fmt::format("{} cannot be written", settings.json));
        }
    }
    return 0;
}

}  // namespace bench::model
