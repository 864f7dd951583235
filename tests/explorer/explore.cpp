// explore: the crash explorer. docs/internals/crash-explorer.md is its manual.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <fmt/core.h>

#include "arguments.hpp"
#include "counts.hpp"
#include "jobs.hpp"
#include "os/thread_calls.hpp"
#include "report.hpp"
#include "sim/trace_observer.hpp"

namespace stillpoint::explorer {

namespace {

constexpr int found_violations = 1;
constexpr double canary_seconds = 300;  ///< of one canary, unless told otherwise: the slowest takes a sixth of it
constexpr std::uint64_t many_programs = 60;  ///< states of each: much depends on where they are killed
/// A campaign that must find something may take so many states, or so long, whatever the others get.
constexpr std::uint64_t states_until_found = 10'000;
constexpr double seconds_until_found = 30;
constexpr unsigned hang_seconds = 120;  ///< more than that after its time, a hunt hangs

double seconds_since(std::chrono::steady_clock::time_point begun)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

std::vector<Campaign> all_campaigns()
{
    std::vector<Campaign> all = conformance_campaigns();
    for (auto* const more : {&object_campaigns, &transaction_campaigns, &section_campaigns, &typed_campaigns, &damage_campaigns,
                             &leftover_campaigns, &media_campaigns, &rados_campaigns, &replica_campaigns}) {
        for (Campaign& campaign : more()) {
            all.push_back(std::move(campaign));
        }
    }
    return all;
}

CampaignSettings settings_of(const Arguments& arguments, std::uint64_t states, double seconds)
{
    CampaignSettings settings;
    settings.limits.states = states;
    settings.limits.seconds = seconds;
    settings.seed = arguments.seed;
    settings.scratch = arguments.scratch;
    return settings;
}

/// Campaigns that must find something: one without a violation is the failure.
std::vector<Campaign> campaigns_that_find()
{
    std::vector<Campaign> all = stray_store_campaigns();
    for (Campaign& campaign : lost_reads_campaigns()) {
        all.push_back(std::move(campaign));
    }
    for (Campaign& campaign : wrong_rados_campaigns()) {
        all.push_back(std::move(campaign));
    }
    return all;
}

CampaignResult expect_violation(CampaignResult result)
{
    if (result.violations.empty() && result.skipped.empty()) {
        ++result.figures.violations;
        result.violations.push_back({"", "", "what this campaign must find was not noticed"});
    } else {
        result.violations.clear();
        result.figures.violations = 0;
    }
    return result;
}

int run_campaigns(const Arguments& arguments)
{
    std::vector<Campaign> campaigns = all_campaigns();
    const std::size_t ordinary = campaigns.size();
    for (Campaign& campaign : campaigns_that_find()) {
        campaign.run = [run = campaign.run](const CampaignSettings& settings) {
            CampaignSettings longer = settings;  // Ends with the first.
            longer.limits.states = std::max(settings.limits.states, states_until_found);
            longer.limits.seconds = std::max(settings.limits.seconds, seconds_until_found);
            return expect_violation(run(longer));
        };
        campaigns.push_back(std::move(campaign));
    }
    std::erase_if(campaigns, [&](const Campaign& campaign) { return campaign.name.find(arguments.campaign) == std::string::npos; });
    if (campaigns.empty()) {
        fmt::print(stderr, "explore: no campaign has \"{}\" in its name; --list names them\n", arguments.campaign);
        return 64;
    }
    const auto begun = std::chrono::steady_clock::now();
    const std::uint64_t share = arguments.states / std::min(campaigns.size(), ordinary) + 1;
    // Each process gets an equal part of the campaigns' time.
    const double slots = static_cast<double>(campaigns.size()) / arguments.jobs + 1;
    const double seconds = arguments.seconds > 0 ? arguments.seconds / slots : 3600;
    std::vector<Job> jobs;
    for (const Campaign& campaign : campaigns) {
        jobs.push_back([&, share, seconds] { return campaign.run(settings_of(arguments, share, seconds)); });
    }
    Report report(arguments.json, arguments.quiet);
    std::size_t done = 0;
    const bool whole = run_jobs(jobs, arguments.jobs, [&](std::size_t index, const CampaignResult& result) {
        report.campaign_ended(campaigns[index].name, result, ++done, campaigns.size());
    });
    report.summary(seconds_since(begun), arguments.jobs, fmt::format("explore --states {} --seed {}", arguments.states, arguments.seed),
                   !whole);
    return report.failed() ? found_violations : whole ? 0 : 130;
}

/// Runs campaigns against a canary until one finds a violation, whose campaign's name goes to `skipped`, or until the time is over.
CampaignResult hunt(const Arguments& arguments, const CanaryEntry& canary)
{
    remove_canary(canary.canary);
    const auto begun = std::chrono::steady_clock::now();
    const double seconds = arguments.seconds > 0 ? arguments.seconds : canary_seconds;
    alarm(static_cast<unsigned>(seconds) + hang_seconds);  // Without what was removed, code may loop forever.
    CampaignResult total;
    std::vector<Campaign> campaigns = campaigns_against(canary);
    std::erase_if(campaigns, [&](const Campaign& campaign) { return campaign.name.find(arguments.campaign) == std::string::npos; });
    struct Pass {
        std::size_t campaigns;
        std::uint64_t states;
        std::uint64_t program_states;
    };
    // Where it is likeliest to show: many programs, since much depends on where they are killed and on which thread comes first; then
    // many images of fewer; in the second half of the time everywhere, for what shows there seldom on this machine.
    const Pass passes[] = {{1, 15'000, many_programs}, {1, 15'000, 5'000}, {1, 30'000, many_programs},       {1, 30'000, 1'000},
                           {1, 60'000, 500},           {1, 30'000, 5'000}, {campaigns.size(), 2'000, 1'000}, {1, 100'000, 2'000}};
    std::uint64_t seed = arguments.seed;
    bool is_everywhere = false;
    for (const Pass& pass : passes) {
        is_everywhere = is_everywhere || pass.campaigns > 1;
        for (std::size_t i = 0; i < std::min(pass.campaigns, campaigns.size()); ++i) {
            const double left = (is_everywhere ? seconds : seconds / 2) - seconds_since(begun);
            if (left <= 0) {
                break;
            }
            CampaignSettings settings = settings_of(arguments, pass.states, left);
            settings.limits.program_states = pass.program_states;
            settings.seed = seed++;
            CampaignResult result = campaigns[i].run(settings);
            total.figures.add(result.figures);
            if (!result.violations.empty()) {
                total.skipped = fmt::format("{} after {} states, {:.1f} s: {}", campaigns[i].name, total.figures.states,
                                            seconds_since(begun), result.violations.front().what);
                return total;
            }
        }
    }
    return total;
}

/// The one that is named, or each Nth.
std::vector<CanaryEntry> chosen_canaries(const Arguments& arguments)
{
    std::vector<CanaryEntry> chosen = canaries();
    if (!arguments.canary.empty()) {
        std::erase_if(chosen, [&](const CanaryEntry& entry) { return entry.name != arguments.canary; });
        return chosen;
    }
    std::uint64_t place = arguments.seed;
    std::erase_if(chosen, [&](const CanaryEntry&) { return place++ % arguments.each != 0; });
    return chosen;
}

int run_canaries(const Arguments& arguments)
{
    const std::vector<CanaryEntry> chosen = chosen_canaries(arguments);
    if (chosen.empty()) {
        if (arguments.canary.empty()) {
            fmt::print(stderr, "explore: --each {} passes over all canaries; there are {}\n", arguments.each, canaries().size());
        } else {
            fmt::print(stderr, "explore: there is no canary \"{}\"; --list names them\n", arguments.canary);
        }
        return 64;
    }
    const auto begun = std::chrono::steady_clock::now();
    std::vector<Job> jobs;
    for (const CanaryEntry& canary : chosen) {
        static_cast<void>(campaigns_against(canary));  // A row that names no campaign is an error of the whole run.
        jobs.push_back([&] { return hunt(arguments, canary); });
    }
    Report report(arguments.json, arguments.quiet);
    std::size_t done = 0;
    const bool whole = run_jobs(jobs, arguments.jobs, [&](std::size_t index, const CampaignResult& result) {
        report.canary_ended(chosen[index], result.skipped, ++done, chosen.size());
    });
    report.canary_summary(seconds_since(begun));
    return report.failed() ? found_violations : whole ? 0 : 130;
}

int list()
{
    for (const Campaign& campaign : all_campaigns()) {
        fmt::print("{}\n", campaign.name);
    }
    for (const Campaign& campaign : campaigns_that_find()) {
        fmt::print("{}\n", campaign.name);
    }
    for (const CanaryEntry& canary : canaries()) {
        fmt::print("canary {:<28} {}\n", canary.name, canary.what);
    }
    return 0;
}

int run_counts(const Arguments& arguments)
{
    const std::string counted = count_checkpoints(arguments.scratch);
    if (arguments.golden.empty()) {
        fmt::print("{}", counted);
        return 0;
    }
    std::ifstream file(arguments.golden);
    const std::string golden{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (golden == counted) {
        return 0;
    }
    fmt::print("{} says:\n{}\nNow it is:\n{}\nIf that is meant: explore --counts > {}\n", arguments.golden, golden, counted,
               arguments.golden);
    return found_violations;
}

int explore(int argc, char** argv)
{
    Arguments arguments;
    if (const auto code = read_arguments(argc, argv, arguments)) {
        return *code;
    }
    if (arguments.list) {
        return list();
    }
    std::error_code none;
    const std::filesystem::path given = arguments.scratch.empty() ? std::filesystem::temp_directory_path(none)
                                                                  : std::filesystem::path(arguments.scratch);
    std::string own = (given / "explore-XXXXXX").string();
    if (mkdtemp(own.data()) == nullptr) {
        fmt::print(stderr, "explore: cannot make a directory in {}; name another with --scratch\n", given.string());
        return 73;
    }
    arguments.scratch = own;
    sim::trace_media();
    // Children inherit it: where threads run already it takes several milliseconds, of each recovery that is a process.
    static_cast<void>(os::register_for_membarrier());
    const bool hunts = arguments.canaries || !arguments.canary.empty();
    const int code = arguments.counts ? run_counts(arguments) : hunts ? run_canaries(arguments) : run_campaigns(arguments);
    std::filesystem::remove_all(own, none);
    return code;
}

}  // namespace
}  // namespace stillpoint::explorer

int main(int argc, char** argv)
{
    try {
        return stillpoint::explorer::explore(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "explore: {}\n", error.what());
        return 70;
    }
}
