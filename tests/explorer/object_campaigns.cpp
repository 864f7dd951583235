// Durable linearizability: programs over durable objects.

#include "api/registry.hpp"
#include "campaign.hpp"
#include "objects/object_workload.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::explorer {

namespace {

ProgramPlan plan_of(std::string_view engine, const ObjectWorkloadEntry& objects, sim::Profile profile)
{
    ProgramPlan plan;
    plan.objects = &objects;
    plan.engine = engine;
    plan.tracker = "auto";
    plan.profile = profile;
    plan.operations = objects.operations;
    return plan;
}

void add_campaigns(std::string_view engine, std::vector<Campaign>& campaigns)
{
    const auto name = [engine](const char* what, sim::Profile profile, std::string_view objects) {
        return std::string(engine) + "/" + what + "/" + std::string(to_text(profile)) + "/" + std::string(objects);
    };
    for (const ObjectWorkloadEntry& objects : object_workloads()) {
        for (const sim::Profile profile : every_profile) {
            campaigns.push_back(exploration(name("objects", profile, objects.name), plan_of(engine, objects, profile)));
        }
        for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
            ProgramPlan plan = plan_of(engine, objects, profile);
            plan.timed = true;
            campaigns.push_back(exploration(name("objects-timed", profile, objects.name), plan));
        }
    }
    for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
        const ObjectWorkloadEntry& objects = object_workloads()[1];
        ProgramPlan plan = plan_of(engine, objects, profile);
        plan.failing_sync = 15;
        campaigns.push_back(exploration(name("objects-failed-sync", profile, objects.name), plan));
        plan.failing_sync = UINT64_MAX;
        plan.place = profile == sim::Profile::page ? Place::real_file : Place::real_memory;
        campaigns.push_back(exploration(name("objects-real", profile, objects.name), plan));
    }
    for (const ObjectWorkloadEntry& objects : object_workloads()) {
        if (objects.name == "overtaking") {
            for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
                ProgramPlan plan = plan_of(engine, objects, profile);
                plan.power_cuts_only = true;
                plan.sync_us = 300;
                campaigns.push_back(exploration(name("objects-cut", profile, objects.name), plan));
            }
        }
    }
}

}  // namespace

std::vector<Campaign> object_campaigns()
{
    std::vector<Campaign> campaigns;
    for (const EngineDriver& driver : engine_drivers()) {
        if (driver.programs == Programs::operations) {
            add_campaigns(driver.format.name, campaigns);
        }
    }
    return campaigns;
}

}  // namespace stillpoint::explorer
