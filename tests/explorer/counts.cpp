#include "counts.hpp"

#include "campaign.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "api/registry.hpp"
#include "arch/flush.hpp"
#include "program.hpp"
#include "runtime/engine.hpp"
#include "typed/typed_program.hpp"

namespace stillpoint::explorer {

namespace {

struct Counts {
    std::uint64_t checkpoints = 0;
    std::uint64_t lines_written_back = 0;
    std::uint64_t nontemporal_bytes = 0;
    std::uint64_t fences = 0;
    std::uint64_t block_writes = 0;
    std::uint64_t block_bytes = 0;
    std::uint64_t syncs = 0;
};

/// Counts the checkpoints' work, not that of making the pool.
Counts count(const std::vector<sim::Event>& events)
{
    Counts counts;
    bool opened = false;
    for (const sim::Event& event : events) {
        if (event.kind == sim::EventKind::acknowledge) {
            counts.checkpoints += opened ? 1 : 0;
            opened = true;
        }
        if (!opened) {
            continue;
        }
        switch (event.kind) {
        case sim::EventKind::write_back: counts.lines_written_back += arch::lines_in(event.offset, event.size, cache_line_bytes); break;
        case sim::EventKind::nontemporal_store: counts.nontemporal_bytes += event.size; break;
        case sim::EventKind::fence: ++counts.fences; break;
        case sim::EventKind::block_write:
            ++counts.block_writes;
            counts.block_bytes += event.size;
            break;
        case sim::EventKind::sync: ++counts.syncs; break;
        default: break;
        }
    }
    return counts;
}

std::string row_of(ProgramRunner& runner, const ProgramPlan& plan, std::string_view program)
{
    const ProgramRun run = runner.run(plan, sim::CrashImage{{}, false});
    if (!run.problem.empty()) {
        throw std::runtime_error(run.problem);
    }
    const Counts counts = count(run.events);
    return fmt::format("{:<12} {:<10} {:<10} {:>6} {:>9} {:>7} {:>7} {:>8} {:>6}\n", plan.engine, to_text(plan.profile), program,
                       counts.lines_written_back, counts.nontemporal_bytes, counts.fences, counts.block_writes,
                       counts.block_bytes / page_bytes, counts.syncs);
}

/// Engines without checkpoints: so many transactions, with the counting of references after one of three.
std::string rows_of_typed_objects(ProgramRunner& runner, const EngineDriver& driver, std::uint64_t operations)
{
    std::string text;
    for (const char* const name : {"lists", "tree", "rings", "shapes"}) {
        ProgramPlan plan;
        plan.typed = &typed_program_called(name);
        plan.engine = driver.format.name;
        plan.profile = sim::Profile::cache_line;
        plan.operations = operations;
        text += row_of(runner, plan, name);
    }
    return text;
}

}  // namespace

std::string count_checkpoints(const std::string& scratch)
{
    take_shares_as_the_product();
    constexpr std::uint64_t operations = 20;
    std::string text = fmt::format("{} checkpoints, one after each operation; totals\n{:<12} {:<10} {:<10} {:>6} {:>9} {:>7} "
                                   "{:>7} {:>8} {:>6}\n",
                                   operations, "engine", "profile", "workload", "lines", "nt-bytes", "fences", "writes", "pages", "syncs");
    ProgramRunner runner(scratch);
    for (const EngineDriver& driver : engine_drivers()) {
        for (const sim::Profile profile : {sim::Profile::cache_line, sim::Profile::page}) {
            for (const char* const workload : {"bank", "list", "hash-map", "btree"}) {
                ProgramPlan plan;
                plan.workload = &workload_called(workload);
                plan.engine = driver.format.name;
                plan.tracker = driver.trackers.size() < 2 ? "auto" : "mprotect";  // Everywhere; and it finds what others find.
                plan.profile = profile;
                plan.operations = operations;
                plan.checkpoint_each = true;
                text += row_of(runner, plan, workload);
            }
        }
    }
    for (const EngineDriver& driver : every_engine_driver()) {
        text += driver.programs == Programs::typed_objects ? rows_of_typed_objects(runner, driver, operations) : "";
    }
    return text;
}

}  // namespace stillpoint::explorer
