#include "objects/object_program.hpp"

#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/sim_medium.hpp"
#include "sim/store_tracer.hpp"
#include "objects/object_workload.hpp"
#include "os/log.hpp"
#include "stillpoint/pronto.h"
#include "stillpoint/stillpoint.h"

namespace stillpoint::explorer {

namespace {

bool notes_are_begun = false;
/// Options that change from program to program, so that each way of an engine has its turn.
std::string options_of(const ProgramPlan& plan)
{
    std::string text = "quiet pool_size_mb=4 pool_max_mb=8 engine=" + plan.engine + plan.objects->options(plan.seed) + plan.more_options +
                       " recovery=" + (plan.seed % 2 == 0 ? "eager" : "auto") + " interval_ms=" + (plan.timed ? "1" : "3600000") +
                       " durability=" + (plan.profile == sim::Profile::process ? "process" : "power");
    if (plan.place != Place::simulated) {
        text += plan.place == Place::real_file ? " medium=file" : " medium=memory";
    }
    return text;
}

void note_epochs() { sim::record(sim::EventKind::acknowledge, 0, nullptr, sp_epoch(), sp_durable_epoch()); }

/// A program whose sync fails may be refused anything from then on.
std::string refused(const ProgramPlan& plan, const std::string& what) { return plan.failing_sync == UINT64_MAX ? what : ""; }

/// The message of a recovering process to the one that asked.
struct Told {
    static constexpr std::size_t parts_max = 64;
    std::uint64_t count;
    std::uint64_t parts[parts_max][2];
    bool is_whole;
    char problem[512];
};

void tell_problem(Told& told, const std::string& what) { std::strncpy(told.problem, what.c_str(), sizeof told.problem - 1); }

/// The recovering process.
void recover_and_tell(const ProgramPlan& plan, Told& told)
{
    os::set_least_severity(os::Severity::error);
    const std::string path = "crash image";
    if (sp_open(path.c_str(), options_of(plan).c_str()) != SP_OK) {
        tell_problem(told, std::string("the pool does not open: ") + sp_last_error());
        return;
    }
    try {
        const std::unique_ptr<ObjectWorkload> workload = plan.objects->make();
        workload->find_objects();
        for (const auto& [part, digest] : workload->digests()) {
            told.parts[told.count][0] = part;
            told.parts[told.count][1] = digest;
            ++told.count;
        }
        told.is_whole = true;
    } catch (const std::exception& error) {
        tell_problem(told, std::string("objects are refused: ") + error.what());
    }
}

}  // namespace

void ObjectNotes::begin() noexcept { notes_are_begun = true; }
bool ObjectNotes::are_begun() noexcept { return notes_are_begun; }

void ObjectNotes::state(std::uint64_t part, std::uint64_t digest) noexcept
{
    if (notes_are_begun) {
        sim::record(sim::EventKind::part_state, part, nullptr, 0, digest);
    }
}

void ObjectNotes::acknowledged(std::uint64_t part, std::uint64_t digest) noexcept
{
    sim::record(sim::EventKind::part_acknowledge, part, nullptr, 0, digest);
}

void ObjectNotes::withdrawn(std::uint64_t part, std::uint64_t digest) noexcept
{
    if (notes_are_begun) {
        sim::record(sim::EventKind::part_withdrawn, part, nullptr, 0, digest);
    }
}

void ObjectNotes::number(std::uint64_t part, const void* object, bool is_new) noexcept
{
    std::uint64_t committed = 0;
    if (sp_pronto_numbers(object, &committed, nullptr) == SP_OK) {
        sim::record(sim::EventKind::part_number, part, nullptr, is_new ? 1 : 0, committed);
    }
}

std::string run_objects(const ProgramPlan& plan, const std::string& path)
{
    os::set_least_severity(os::Severity::error);
    if (sp_open(path.c_str(), options_of(plan).c_str()) != SP_OK) {
        return refused(plan, std::string("the pool does not open: ") + sp_last_error());
    }
    const std::uint64_t recovered = sp_durable_epoch();
    try {
        const std::unique_ptr<ObjectWorkload> workload = plan.objects->make();
        workload->find_objects();
        for (const auto& [part, digest] : workload->digests()) {
            sim::record(sim::EventKind::part_recovered, part, nullptr, 0, digest);
        }
        sim::record(sim::EventKind::acknowledge, 0, nullptr, sp_epoch(), recovered);
        ObjectNotes::begin();
        Random random((plan.seed * 1'000'003 + plan.run) * 1'000'003);
        for (std::uint64_t i = 0; i < plan.operations; ++i) {
            workload->perform(random);
            note_epochs();
            if (plan.timed) {
                usleep(static_cast<useconds_t>(random() % 800));  // Otherwise it has ended before the clock's first snapshot.
            }
        }
    } catch (const std::exception& error) {
        return refused(plan, std::string("an operation failed: ") + error.what());
    }
    if (plan.ends_normally && sp_close() != SP_OK) {
        return refused(plan, std::string("the pool does not close: ") + sp_last_error());
    }
    return "";
}

void recover_objects(const ProgramPlan& plan, const sim::CrashImage& image, Recovered& recovered)
{
    static auto* const told = static_cast<Told*>(mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (told == MAP_FAILED) {
        throw std::bad_alloc();
    }
    *told = {};
    ProgramPlan simulated = plan;
    simulated.place = Place::simulated;
    sim::Stage stage(byte_addressable(plan), image);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        alarm(60);  // A recovery that hangs is a finding.
        sim::recording.store(nullptr, std::memory_order_release);
        sim::set_stage(&stage);
        recover_and_tell(simulated, *told);
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    if (WIFSIGNALED(status)) {
        recovered.problem = "the recovering program died of signal " + std::to_string(WTERMSIG(status));
    } else if (!told->is_whole) {
        recovered.kind = Recovered::Kind::refused;
        recovered.problem = told->problem;
    }
    for (std::uint64_t i = 0; i < told->count; ++i) {
        recovered.parts[told->parts[i][0]] = told->parts[i][1];
    }
}

}  // namespace stillpoint::explorer
