// Typed objects: what is acknowledged survives, nothing is there in half; counts are exact, and pointers lead where they should wherever
// the pool lies.

#include "api/registry.hpp"
#include "campaign.hpp"
#include "runtime/engine.hpp"
#include "typed/typed_program.hpp"

namespace stillpoint::explorer {

namespace {

void add_campaigns(std::string_view engine, std::vector<Campaign>& campaigns)
{
    const auto add = [&](const char* what, const TypedProgramEntry& program, ProgramPlan plan, std::uint64_t operations = 0) {
        plan.typed = &program;
        plan.engine = engine;
        plan.tracker = "auto";
        plan.operations = operations != 0 ? operations : program.operations;
        campaigns.push_back(
            exploration(plan.engine + "/" + what + "/" + std::string(to_text(plan.profile)) + "/" + std::string(program.name), plan));
    };
    for (const TypedProgramEntry& program : typed_programs()) {
        if (program.for_openings) {
            continue;
        }
        for (const sim::Profile profile : every_profile) {
            ProgramPlan plan;
            plan.profile = profile;
            plan.fence_us_max = program.parts > 1 ? 100 : 0;
            add("typed", program, plan);
        }
    }
    for (const char* const name : {"lists", "threads"}) {  // Counts change in the background.
        ProgramPlan plan;
        plan.profile = sim::Profile::cache_line;
        plan.timed = true;
        plan.fence_us_max = 200;
        add("typed-timed", typed_program_called(name), plan);
    }
    for (const char* const name : {"lists", "tree", "reuse"}) {  // Short runs: most crashes are those of openings, which move the pool.
        ProgramPlan plan;
        plan.profile = sim::Profile::cache_line;
        add("typed-moved", typed_program_called(name), plan, typed_program_called(name).for_openings ? 0 : 3);
    }
    ProgramPlan plan;
    plan.profile = sim::Profile::cache_line;
    plan.kill_in_openings = true;
    add("typed-killed-openings", typed_program_called("lists"), plan, 3);
    add("typed-killed-openings", typed_program_called("makers"), plan);
    plan.kill_in_openings = false;
    plan.power_cuts_only = true;
    add("typed-cut", typed_program_called("lists"), plan);
}

}  // namespace

std::vector<Campaign> typed_campaigns()
{
    std::vector<Campaign> campaigns;
    for (const EngineDriver& driver : every_engine_driver()) {
        if (driver.programs == Programs::typed_objects) {
            add_campaigns(driver.format.name, campaigns);
        }
    }
    return campaigns;
}

}  // namespace stillpoint::explorer
