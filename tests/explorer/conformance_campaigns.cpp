#include "api/registry.hpp"
#include "campaign.hpp"
#include "os/userfaultfd.hpp"
#include "runtime/engine.hpp"
#include "sim/store_tracer.hpp"

namespace stillpoint::explorer {

std::string why_skipped(const ProgramPlan& plan)
{
    if (maps_its_file(plan) && !sim::stores_can_be_traced) {
        return "a program's own stores are traced on x86-64 only";
    }
    return tracker_missing(plan.tracker);
}

Campaign exploration(std::string name, ProgramPlan plan)
{
    auto run = [name, plan](const CampaignSettings& settings) {
        CampaignResult result;
        result.skipped = why_skipped(plan);
        if (!result.skipped.empty()) {
            return result;
        }
        ProgramPlan seeded = plan;
        seeded.seed = settings.seed;
        Limits limits = settings.limits;
        if (plan.torn_words) {
            limits.power_cuts = 16;  // Few torn images are what is looked for.
            limits.generations = 2;
        }
        if (plan.power_cuts_only) {
            limits.power_cuts = 24;
            limits.kills = 1;
            limits.generations = 2;
        }
        if (plan.kill_around_commits || plan.kill_in_openings) {
            limits.kills = 8;
            limits.power_cuts = 1;
        }
        Explorer explorer(name, seeded, limits, settings.seed, settings.scratch);
        explorer.run();
        return CampaignResult{explorer.figures(), explorer.violations(), ""};
    };
    return {std::move(name), std::move(run)};
}

namespace {

std::vector<std::string> trackers_of(const EngineDriver& driver)
{
    if (driver.trackers.size() < 2) {  // No choice.
        return {"auto"};
    }
    return {driver.trackers.begin(), driver.trackers.end()};
}

/// In the name of a campaign: how the engine learns what is stored.
std::string tracker_in_name(const EngineDriver& driver, const std::string& tracker)
{
    return driver.programs == Programs::transactions ? "transactions" : tracker;
}

/// Two epochs of an engine that logs are in flight only where checkpoints come by the clock; its heap logs too.
std::vector<const WorkloadEntry*> timed_workloads(const EngineDriver& driver)
{
    std::vector<const WorkloadEntry*> chosen = {&workloads().front()};
    for (const char* const name : {"hash-map", "allocator", "handles"}) {
        if (driver.trackers.empty()) {
            chosen.push_back(&workload_called(name));
        }
    }
    return chosen;
}

/// An engine that overwrites the program's bytes in place, or appends to sectors of a log that have acknowledged transactions, relies on
/// sectors that are written whole; docs/guide/guarantees.md says so.
void add_nonsense_campaigns(const EngineDriver& driver, std::vector<Campaign>& campaigns)
{
    if (!driver.sums_program_bytes || driver.programs == Programs::transactions || driver.programs == Programs::critical_sections) {
        return;
    }
    for (const char* const name : {"bank", "hash-map", "growth"}) {
        ProgramPlan plan;
        plan.workload = &workload_called(name);
        plan.engine = driver.format.name;
        plan.tracker = "auto";
        plan.cut_sector = sim::CutSector::or_nonsense;
        campaigns.push_back(exploration(plan.engine + "/nonsense/page/" + name, plan));
    }
}

/// Around the commit records.
void add_commit_campaigns(const std::string& engine, std::vector<Campaign>& campaigns)
{
    ProgramPlan plan;
    plan.workload = &workloads().front();
    plan.engine = engine;
    plan.tracker = "auto";
    plan.profile = sim::Profile::cache_line;
    plan.kill_around_commits = true;
    campaigns.push_back(exploration(engine + "/kill-around-commits/line", plan));
    plan.kill_around_commits = false;
    plan.operations = 2;
    plan.torn_words = true;
    plan.checkpoint_each = true;
    campaigns.push_back(exploration(engine + "/torn-words/line", plan));
}

}  // namespace

std::string tracker_missing(const std::string& tracker)
{
    static const bool has_userfaultfd = os::Userfaultfd::open().has_value();
    return tracker == "uffd" && !has_userfaultfd ? "this kernel gives this process no userfaultfd" : "";
}

std::vector<Campaign> conformance_campaigns()
{
    std::vector<Campaign> campaigns;
    for (const EngineDriver& driver : engine_drivers()) {
        const std::string engine(driver.format.name);
        for (const WorkloadEntry& workload : workloads()) {
            if (!workload.fits(engine)) {
                continue;
            }
            for (const sim::Profile profile : every_profile) {
                for (const std::string& tracker : trackers_of(driver)) {
                    ProgramPlan plan;
                    plan.workload = &workload;
                    plan.engine = engine;
                    plan.tracker = tracker;
                    plan.profile = profile;
                    campaigns.push_back(exploration(engine + "/" + tracker_in_name(driver, tracker) + "/" + std::string(to_text(profile)) +
                                                        "/" + std::string(workload.name),
                                                    plan));
                }
            }
        }
        add_commit_campaigns(engine, campaigns);
        for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
            ProgramPlan plan;
            plan.workload = &workloads().front();
            plan.engine = engine;
            plan.tracker = "auto";
            plan.profile = profile;
            plan.timed = true;
            for (const WorkloadEntry* const workload : timed_workloads(driver)) {
                plan.workload = workload;
                campaigns.push_back(
                    exploration(engine + "/timed/" + std::string(to_text(profile)) + "/" + std::string(workload->name), plan));
            }
            plan.timed = false;
            plan.workload = &workloads().front();
            plan.failing_sync = 9;
            campaigns.push_back(exploration(engine + "/failed-sync/" + std::string(to_text(profile)), plan));
            if (profile == sim::Profile::page) {
                plan.workload = &workload_called("growth");
                plan.operations = 5;
                campaigns.push_back(exploration(engine + "/failed-sync/page/growth", plan));
            }
            plan.failing_sync = UINT64_MAX;
            plan.primitive_files = true;
            plan.workload = &workload_called("growth");
            plan.operations = 5;
            campaigns.push_back(exploration(engine + "/primitive-files/" + std::string(to_text(profile)), plan));
            plan.primitive_files = false;
            plan.operations = ProgramPlan{}.operations;
            plan.workload = &workloads().front();
            plan.place = profile == sim::Profile::page ? Place::real_file : Place::real_memory;
            campaigns.push_back(exploration(engine + "/real-" + std::string(to_text(profile)), plan));
        }
        add_nonsense_campaigns(driver, campaigns);
    }
    return campaigns;
}

std::vector<Campaign> stray_store_campaigns()
{
    std::vector<Campaign> campaigns;
    for (const EngineDriver& driver : engine_drivers()) {
        ProgramPlan plan;
        plan.workload = &workloads().front();
        plan.engine = driver.format.name;
        plan.tracker = "auto";
        plan.profile = sim::Profile::cache_line;
        plan.stray_store = true;
        campaigns.push_back(exploration(plan.engine + "/stray-store", plan));
    }
    return campaigns;
}

}  // namespace stillpoint::explorer
