// Leftovers: a pool that had grown, and over which a smaller copy of it was written that was taken before, without cutting the file off
// (dd conv=notrunc). What lies past the pool's end has this pool's identity, sound checksums, and epochs that it will come to once more;
// the next growth takes it in.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "api/registry.hpp"
#include "campaign.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::explorer {

namespace {

constexpr unsigned programs_without_growth_max = 50;

struct Start {
    sim::CrashImage file;
    History history;
};

/// The file as `older` over `newer`, which is as long or longer.
sim::CrashImage written_over(const sim::CrashImage& older, sim::CrashImage newer)
{
    std::array<std::byte, page_bytes> page;
    for (std::uint64_t at = 0; at < older.content.size_bytes(); at += page_bytes) {
        older.content.read(at, page.data(), page.size());
        newer.content.write(at, page.data(), page.size());
    }
    return newer;
}

/// The leftovers of the program at its end, under what it had before it grew last. Nothing: it has not grown.
std::optional<Start> start_of(const ProgramPlan& plan, const ProgramRun& run)
{
    sim::CrashModel model(plan.profile, sim::CrashImage{{}, false});
    History history = history_for(plan);
    std::optional<Start> last;
    std::optional<Start> before_growth;
    for (const sim::Event& event : run.events) {
        model.apply(event);
        history.apply(event);
        if (last && model.visible().content.size_bytes() > last->file.content.size_bytes()) {
            before_growth = std::move(last);
            last.reset();
        }
        if (event.kind == sim::EventKind::acknowledge) {
            last = Start{model.visible(), history};
        }
    }
    if (before_growth) {
        before_growth->file = written_over(before_growth->file, model.visible());
    }
    return before_growth;
}

CampaignResult run_leftovers(const std::string& name, ProgramPlan plan, const CampaignSettings& settings)
{
    CampaignResult result;
    result.skipped = why_skipped(plan);
    if (!result.skipped.empty()) {
        return result;
    }
    const auto begun = std::chrono::steady_clock::now();
    const auto seconds_left = [&] {
        return settings.limits.seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    };
    ProgramRunner runner(settings.scratch);
    plan.seed = settings.seed;
    unsigned without_growth = 0;
    while (result.violations.empty() && result.figures.states < settings.limits.states && seconds_left() > 0) {
        plan.seed = plan.seed * 31 + 1;
        plan.ends_normally = plan.seed % 2 == 0;
        const ProgramRun run = runner.run(plan, sim::CrashImage{{}, false});
        if (!run.problem.empty()) {
            result.violations.push_back({name, "making the pool", run.problem});
            ++result.figures.violations;
            break;
        }
        const std::optional<Start> start = start_of(plan, run);
        if (!start) {
            if (++without_growth > programs_without_growth_max) {
                break;
            }
            continue;
        }
        Limits limits = settings.limits;
        limits.states = std::min(limits.program_states, limits.states - result.figures.states);
        limits.seconds = seconds_left();
        limits.kills = 2;
        limits.power_cuts = 2;
        Explorer explorer(name, plan, limits, plan.seed, settings.scratch);
        explorer.run_from(start->file, start->history);
        result.figures.add(explorer.figures());
        result.violations = explorer.violations();
    }
    result.figures.cut_short = seconds_left() <= 0;
    return result;
}

}  // namespace

std::vector<Campaign> leftover_campaigns()
{
    std::vector<Campaign> campaigns;
    for (const EngineDriver& driver : engine_drivers()) {
        for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
            ProgramPlan plan;
            plan.workload = &workload_called("growth");
            plan.engine = driver.format.name;
            plan.tracker = "auto";
            plan.profile = profile;
            plan.operations = 6;
            plan.checkpoint_each = true;
            std::string name = plan.engine + "/leftovers/" + std::string(to_text(profile));
            campaigns.push_back({name, [name, plan](const CampaignSettings& settings) { return run_leftovers(name, plan, settings); }});
        }
    }
    return campaigns;
}

}  // namespace stillpoint::explorer
