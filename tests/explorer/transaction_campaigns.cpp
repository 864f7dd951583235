// Durable transactions: what is acknowledged survives, with all that it has read; nothing else does in half.

#include "api/registry.hpp"
#include "campaign.hpp"
#include "engines/spht.hpp"
#include "runtime/engine.hpp"
#include "transactions/programs.hpp"

namespace stillpoint::explorer {

namespace {

ProgramPlan plan_of(std::string_view engine, const ObjectWorkloadEntry& program, sim::Profile profile)
{
    ProgramPlan plan;
    plan.objects = &program;
    plan.engine = engine;
    plan.tracker = "auto";
    plan.profile = profile;
    plan.operations = program.operations;
    return plan;
}

/// Other ways in which the same transactions become durable; their order is what several threads show.
void add_campaigns_of_protocols(std::string_view engine, std::vector<Campaign>& campaigns)
{
    for (const std::string_view protocol : spht_places::compared_protocols) {
        const auto add = [&](const char* what, ProgramPlan plan) {
            plan.more_options = " protocol=" + std::string(protocol);
            campaigns.push_back(exploration(std::string(engine) + "/" + std::string(protocol) + "/" + what + "/" +
                                                std::string(to_text(plan.profile)) + "/" + std::string(plan.objects->name),
                                            plan));
        };
        for (const char* const name : {"several", "readers", "churn", "large", "aborts", "names"}) {
            ProgramPlan plan = plan_of(engine, transaction_program_called(name), sim::Profile::cache_line);
            plan.fence_us_max = plan.objects->name == "several" || plan.objects->name == "readers" ? 100 : 0;
            add("transactions", plan);
        }
        ProgramPlan plan = plan_of(engine, transaction_program_called("several"), sim::Profile::persistent_caches);
        add("transactions", plan);
        plan = plan_of(engine, transaction_program_called("large"), sim::Profile::cache_line);
        plan.timed = true;
        plan.sync_us = 300;
        add("transactions-timed", plan);
    }
}

void add_campaigns(std::string_view engine, std::vector<Campaign>& campaigns)
{
    const auto add = [&](const char* what, const ProgramPlan& plan) {
        campaigns.push_back(exploration(
            std::string(engine) + "/" + what + "/" + std::string(to_text(plan.profile)) + "/" + std::string(plan.objects->name), plan));
    };
    for (const ObjectWorkloadEntry& program : transaction_programs()) {
        for (const sim::Profile profile : every_profile) {
            ProgramPlan plan = plan_of(engine, program, profile);
            plan.fence_us_max = program.name == "several" || program.name == "readers" ? 100 : 0;
            add("transactions", plan);
        }
    }
    for (const std::string_view executor : other_executors) {
        for (const ObjectWorkloadEntry& program : transaction_programs_on(executor)) {
            for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
                ProgramPlan plan = plan_of(engine, program, profile);
                plan.fence_us_max = program.name == "several" || program.name == "readers" ? 100 : 0;
                const std::string what = "transactions-" + std::string(executor);
                add(what.c_str(), plan);
                if (program.name == "several") {
                    plan.failing_sync = 15;
                    add((what + "-failed-sync").c_str(), plan);
                }
            }
        }
    }
    for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
        for (const char* const name : {"large", "several"}) {
            ProgramPlan plan = plan_of(engine, transaction_program_called(name), profile);
            plan.timed = true;
            plan.sync_us = 300;  // So that transactions commit while an epoch is written.
            add("transactions-timed", plan);
        }
        for (const char* const name : {"churn", "several"}) {
            ProgramPlan plan = plan_of(engine, transaction_program_called(name), profile);
            plan.fence_us_max = plan.objects->name == "several" ? 100 : 0;
            plan.more_options = " markers=always";
            add("transactions-marked", plan);
        }
        for (const char* const name : {"churn", "several", "readers"}) {
            ProgramPlan plan = plan_of(engine, transaction_program_called(name), profile);
            plan.fence_us_max = plan.objects->name == "churn" ? 0 : 100;
            plan.more_options = " visible=stored";  // On a file others always see what is only stored.
            if (profile == sim::Profile::cache_line) {
                add("transactions-stored", plan);
            }
        }
        ProgramPlan plan = plan_of(engine, transaction_program_called("several"), profile);
        plan.failing_sync = 15;
        add("transactions-failed-sync", plan);
        plan.failing_sync = UINT64_MAX;
        plan.power_cuts_only = true;
        plan.sync_us = 300;
        add("transactions-cut", plan);
        plan.power_cuts_only = false;
        plan.sync_us = 0;
        plan.place = profile == sim::Profile::page ? Place::real_file : Place::real_memory;
        add("transactions-real", plan);
    }
}

}  // namespace

std::vector<Campaign> transaction_campaigns()
{
    std::vector<Campaign> campaigns;
    for (const EngineDriver& driver : engine_drivers()) {
        if (driver.programs == Programs::transactions) {
            add_campaigns(driver.format.name, campaigns);
            add_campaigns_of_protocols(driver.format.name, campaigns);
        }
    }
    return campaigns;
}

std::vector<Campaign> lost_reads_campaigns()
{
    std::vector<Campaign> campaigns;
    for (const EngineDriver& driver : engine_drivers()) {
        if (driver.programs != Programs::transactions) {
            continue;
        }
        for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
            ProgramPlan plan = plan_of(driver.format.name, readers_that_do_not_wait(), profile);
            plan.sync_us = 300;
            plan.fence_us_max = 300;
            plan.more_options = " markers=always";  // As in the paper: there is more time between the stores and the acknowledgement.
            campaigns.push_back(exploration(plan.engine + "/reads-may-be-lost/" + std::string(to_text(profile)), plan));
        }
    }
    return campaigns;
}

}  // namespace stillpoint::explorer
