// A pool in a file with a replica in RADOS: whatever is lost, the side that is left has what was promised, and openings decide rightly.

#include "api/registry.hpp"
#include "campaign.hpp"
#include "replica_explorer.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::explorer {

namespace {

Campaign replicated(const ProgramPlan& plan, bool is_sync)
{
    const std::string name = plan.engine + (is_sync ? "/replica-sync/" : "/replica-async/") + std::string(plan.workload->name);
    return {name, [name, plan, is_sync](const CampaignSettings& settings) {
                ProgramPlan seeded = plan;
                seeded.seed = settings.seed;
                ReplicaExplorer explorer(name, seeded, is_sync, settings.limits, settings.seed, settings.scratch);
                explorer.run();
                return CampaignResult{explorer.figures(), explorer.violations(), ""};
            }};
}

}  // namespace

std::vector<Campaign> replica_campaigns()
{
    std::vector<Campaign> campaigns;
    for (const EngineDriver& driver : engine_drivers()) {
        const WorkloadEntry& workload = workloads().front();
        if (!workload.fits(driver.format.name)) {
            continue;
        }
        ProgramPlan plan;
        plan.workload = &workload;
        plan.engine = driver.format.name;
        plan.tracker = "auto";
        plan.has_replica = true;
        for (const bool is_sync : {true, false}) {
            campaigns.push_back(replicated(plan, is_sync));
        }
    }
    return campaigns;
}

}  // namespace stillpoint::explorer
