// Sections that locks delimit, durable one by one: what is acknowledged survives, with all that it has seen; none survives by half.

#include "api/registry.hpp"
#include "campaign.hpp"
#include "runtime/engine.hpp"
#include "sections/programs.hpp"

namespace stillpoint::explorer {

namespace {

/// Few records, of several threads: others begin and end sections between the stores of one and its fence.
bool takes_long_between_fences(const ObjectWorkloadEntry& program)
{
    return program.name == "several" || program.name == "overlapping" || program.name == "readers" || program.name == "conditions";
}

void add_campaigns(std::string_view engine, std::vector<Campaign>& campaigns)
{
    const auto add = [&](const char* what, const ObjectWorkloadEntry& program, ProgramPlan plan) {
        plan.objects = &program;
        plan.engine = engine;
        plan.tracker = "auto";
        plan.operations = program.operations;
        campaigns.push_back(
            exploration(plan.engine + "/" + what + "/" + std::string(to_text(plan.profile)) + "/" + std::string(program.name), plan));
    };
    for (const ObjectWorkloadEntry& program : section_programs()) {
        for (const sim::Profile profile : every_profile) {
            ProgramPlan plan;
            plan.profile = profile;
            plan.fence_us_max = takes_long_between_fences(program) ? 100 : 0;
            add("sections", program, plan);
        }
    }
    for (const char* const name : {"churn", "several", "overlapping"}) {
        ProgramPlan plan;
        plan.profile = sim::Profile::cache_line;
        plan.more_options = " section_markers=always";
        plan.fence_us_max = std::string_view(name) == "churn" ? 0 : 100;
        add("sections-marked", section_program_called(name), plan);
    }
    for (const ObjectWorkloadEntry& program : scribed_programs()) {
        for (const sim::Profile profile : every_profile) {
            ProgramPlan plan;
            plan.profile = profile;
            plan.fence_us_max = 100;
            add("sections-scribed", program, plan);
        }
    }
    for (const ObjectWorkloadEntry& program : ordered_section_programs()) {
        for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
            ProgramPlan plan;
            plan.profile = profile;
            add("sections-order", program, plan);
        }
    }
    for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
        ProgramPlan plan;
        plan.profile = profile;
        plan.timed = true;
        plan.sync_us = 300;  // So that sections end while an epoch is written.
        add("sections-timed", section_program_called("churn"), plan);
        plan.timed = false;
        plan.power_cuts_only = true;
        add("sections-cut", section_program_called("overlapping"), plan);
        plan.power_cuts_only = false;
        plan.sync_us = 0;
        plan.failing_sync = 15;
        add("sections-failed-sync", section_program_called("several"), plan);
        plan.failing_sync = UINT64_MAX;
        plan.place = profile == sim::Profile::page ? Place::real_file : Place::real_memory;
        add("sections-real", section_program_called("overlapping"), plan);
    }
}

}  // namespace

std::vector<Campaign> section_campaigns()
{
    std::vector<Campaign> campaigns;
    for (const EngineDriver& driver : engine_drivers()) {
        if (driver.programs == Programs::critical_sections) {
            add_campaigns(driver.format.name, campaigns);
        }
    }
    return campaigns;
}

}  // namespace stillpoint::explorer
