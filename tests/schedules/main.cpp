// schedules: explores the schedules of the quiescence protocol's own code. docs/internals/quiescence.md, "How it is checked".

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/schedules/explorer.hpp"
#include "tests/schedules/libc_model.hpp"

using namespace stillpoint::schedules;

namespace {

constexpr struct {
    const char* name;
    Model model;
} models[] = {{"sc", Model::sc}, {"tso", Model::tso}, {"weak", Model::weak}};

struct Options {
    std::string scenario;
    std::string model;
    std::string replay;
    Bounds bounds;
    bool mutants = false;
    long mutant = -1;
    long first_mutant = 0;  ///< to go on where an earlier run ended
    std::string of;         ///< mutants with this in their description only
    bool list = false;
};

const char* name_of(Model model)
{
    return std::find_if(std::begin(models), std::end(models), [model](auto& row) { return row.model == model; })->name;
}

template <class Visit>
void for_each_chosen(const Options& options, Visit visit)
{
    for (const auto& [name, model] : models) {
        for (const Scenario& scenario : scenarios()) {
            if ((options.scenario.empty() || options.scenario == scenario.name) && (options.model.empty() || options.model == name)) {
                visit(scenario, model);
            }
        }
    }
}

void print_counterexample(const Scenario& scenario, Model model, const Outcome& outcome, long mutant)
{
    std::printf("    %s\n    replay: --replay '%s:%s:%ld:%u:%s:%s'\n", outcome.violation.c_str(), scenario.name, name_of(model), mutant,
                outcome.signal_at, execution().shared_words().c_str(), outcome.schedule.c_str());
}

int explore_all(const Options& options, const Mutant* mutant)
{
    std::printf("%-18s %-5s %10s %10s %10s %-9s %10s %8s\n", "scenario", "model", "states", "schedules", "random", "coverage", "violations",
                "seconds");
    int violations = 0;
    for_each_chosen(options, [&](const Scenario& scenario, Model model) {
        execution().forget_shared_words();
        const Outcome outcome = explore(scenario, model, mutant, options.bounds);
        const bool holds = outcome.violation.empty();
        violations += holds ? 0 : 1;
        std::printf("%-18s %-5s %10llu %10llu %10llu %-9s %10d %8.2f\n", scenario.name, name_of(model),
                    static_cast<unsigned long long>(outcome.states), static_cast<unsigned long long>(outcome.schedules),
                    static_cast<unsigned long long>(outcome.random_schedules), outcome.complete ? "complete" : "bounded", holds ? 0 : 1,
                    outcome.seconds);
        if (!holds) {
            print_counterexample(scenario, model, outcome, options.mutant);
        }
        std::fflush(stdout);
    });
    std::printf("schedules: %d violations\n", violations);
    return violations == 0 ? 0 : 1;
}

/// Not a variable of the program, which each schedule sets back.
struct Found {
    std::vector<Mutant> mutants;
    std::map<const Scenario*, SiteSet> sites;  ///< of the product's code that each scenario comes to
};

/// One quick run of each scenario finds them.
Found find_mutants()
{
    Found found;
    Bounds quick;
    quick.states_max = 20'000;
    SiteSet all;
    for_each_chosen({}, [&](const Scenario& scenario, Model model) {
        if (model == Model::sc) {
            execution().forget_shared_words();
            execution().forget_sites();
            static_cast<void>(explore(scenario, model, nullptr, quick));
            all.insert(execution().sites().begin(), execution().sites().end());
            found.sites[&scenario] = execution().sites();
        }
    });
    found.mutants = mutants_of(all);
    return found;
}

/// Where a mutant shows itself, if it does: first where its place was come to, then elsewhere.
bool is_killed(const Options& options, const Found& found, const Mutant& mutant, long number)
{
    bool killed = false;
    for (const bool comes_there : {true, false}) {
        for_each_chosen(options, [&](const Scenario& scenario, Model model) {
            if (killed || found.sites.at(&scenario).contains(mutant.site) != comes_there) {
                return;
            }
            execution().forget_shared_words();
            const Outcome outcome = explore(scenario, model, &mutant, options.bounds);
            if (!outcome.violation.empty()) {
                killed = true;
                std::printf("%4ld killed   %-70s %s, %s: %s\n", number, describe(mutant).c_str(), scenario.name, name_of(model),
                            outcome.violation.c_str());
            }
        });
    }
    return killed;
}

/// In a process of its own: some mutants crash, which counts as noticed.
bool is_killed_apart(const Options& options, const Found& found, const Mutant& mutant, long number)
{
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const bool killed = is_killed(options, found, mutant, number);
        std::fflush(stdout);
        _exit(killed ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return false;
    }
    if (WIFSIGNALED(status)) {
        std::printf("%4ld killed   %-70s it crashes\n", number, describe(mutant).c_str());
        return true;
    }
    return WEXITSTATUS(status) == 0;
}

int explore_mutants(const Options& options)
{
    const Found found = find_mutants();
    std::size_t killed = 0;
    std::size_t tried = 0;
    long number = 0;
    for (const Mutant& mutant : found.mutants) {
        if (number < options.first_mutant || describe(mutant).find(options.of) == std::string::npos) {
            ++number;
            continue;
        }
        ++tried;
        if (is_killed_apart(options, found, mutant, number)) {
            ++killed;
        } else {
            std::printf("%4ld SURVIVES %s\n", number, describe(mutant).c_str());
        }
        std::fflush(stdout);
        ++number;
    }
    std::printf("mutants: %zu of %zu killed\n", killed, tried);
    return killed == tried ? 0 : 1;
}

int replay_one(const Options& options)
{
    char scenario[64] = {};
    char model[8] = {};
    char shared[512] = {};
    long mutant = -1;
    unsigned signal_at = 0;
    int used = 0;
    if (std::sscanf(options.replay.c_str(), "%63[^:]:%7[^:]:%ld:%u:%511[^:]:%n", scenario, model, &mutant, &signal_at, shared, &used) !=
        5) {
        std::fprintf(stderr, "schedules: a schedule is SCENARIO:MODEL:MUTANT:SIGNAL:SHARED:MOVES\n");
        return 2;
    }
    std::vector<Mutant> mutants;
    if (mutant >= 0) {
        mutants = find_mutants().mutants;
    }
    Options chosen;
    chosen.scenario = scenario;
    chosen.model = model;
    std::string violated = "no such scenario";
    for_each_chosen(chosen, [&](const Scenario& here, Model in) {
        execution().set_shared_words(shared);
        const Mutant* change = mutant >= 0 && static_cast<std::size_t>(mutant) < mutants.size() ? &mutants[static_cast<std::size_t>(mutant)]
                                                                                                : nullptr;
        violated = replay(here, in, change, signal_at, options.replay.substr(static_cast<std::size_t>(used)));
    });
    std::printf("%s\n", violated.empty() ? "everything holds" : violated.c_str());
    return violated.empty() ? 0 : 1;
}

bool parse(int count, char** arguments, Options& options)
{
    for (int i = 1; i < count; ++i) {
        const std::string name = arguments[i];
        const char* value = i + 1 < count ? arguments[i + 1] : "";
        if (name == "--mutants") {
            options.mutants = true;
            continue;
        }
        if (name == "--list") {
            options.list = true;
            continue;
        }
        ++i;
        if (name == "--scenario") {
            options.scenario = value;
        } else if (name == "--model") {
            options.model = value;
        } else if (name == "--replay") {
            options.replay = value;
        } else if (name == "--mutant") {
            options.mutant = std::atol(value);
        } else if (name == "--first-mutant") {
            options.first_mutant = std::atol(value);
        } else if (name == "--of") {
            options.of = value;
        } else if (name == "--seconds") {
            options.bounds.seconds = std::atof(value);
        } else if (name == "--states") {
            options.bounds.states_max = std::strtoull(value, nullptr, 10);
        } else if (name == "--random-seconds") {
            options.bounds.random_seconds = std::atof(value);
        } else if (name == "--seed") {
            options.bounds.seed = std::strtoull(value, nullptr, 10);
        } else {
            std::fprintf(
                stderr,
                "usage: schedules [--list] [--scenario NAME] [--model sc|tso|weak] [--seconds S] [--states N]\n"
                "                 [--random-seconds S] [--seed N] [--mutants [--first-mutant N] [--of TEXT] | --mutant N] [--replay SCHEDULE]\n");
            return false;
        }
    }
    return true;
}

}  // namespace

int main(int count, char** arguments)
{
    Options options;
    if (!parse(count, arguments, options)) {
        return 2;
    }
    install_libc_model();
    prepare_devices();
    if (options.list) {
        for (const Scenario& scenario : scenarios()) {
            std::printf("%-18s %s\n", scenario.name, scenario.what);
        }
        return 0;
    }
    if (!options.replay.empty()) {
        return replay_one(options);
    }
    if (options.mutants) {
        return explore_mutants(options);
    }
    if (options.mutant >= 0) {
        const auto mutants = find_mutants().mutants;
        if (static_cast<std::size_t>(options.mutant) >= mutants.size()) {
            std::fprintf(stderr, "schedules: there are %zu mutants\n", mutants.size());
            return 2;
        }
        std::printf("%s\n", describe(mutants[static_cast<std::size_t>(options.mutant)]).c_str());
        return explore_all(options, &mutants[static_cast<std::size_t>(options.mutant)]);
    }
    return explore_all(options, nullptr);
}
