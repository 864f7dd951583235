#include <exception>
#include <stdexcept>

#include "engines/breeze/offline.hpp"
#include "engines/breeze/open_pools.hpp"
#include "objects/object_workload.hpp"
#include "objects/threads.hpp"
#include "os/log.hpp"
#include "sim/sim_medium.hpp"
#include "sim/store_tracer.hpp"
#include "sim/trace.hpp"
#include "stillpoint/stillpoint.h"
#include "typed/typed_program.hpp"

namespace stillpoint::explorer {

namespace {

constexpr const char* path = "/explored.pool";
constexpr std::size_t pool_bytes = 4 * mib;

/// A place for the pool. Places overlap: there a pointer that is rewritten twice passes for one that was not.
std::uintptr_t place(std::uint64_t number) noexcept { return window_base + window_bytes / 4 + number % 3 * 2 * mib; }

nvm_options options_of(const ProgramPlan& plan)
{
    nvm_options options{};
    options.medium = byte_addressable(plan) ? "memory" : "file";
    options.durability = plan.profile == sim::Profile::process ? "process" : "power";
    options.base_address = place(plan.run);
    options.threads = plan.seed % 4 == 0 ? 2 : 1;
    options.collect = plan.seed % 8 == 1 ? 1 : 0;
    return options;
}

[[noreturn]] void refused(const char* what) { throw std::runtime_error(std::string(what) + ": " + sp_last_error()); }

/// One run of a program in the pool that it has opened or made.
class Run {
public:
    Run(const ProgramPlan& plan, NVM_POOL* pool) : plan_(plan), pool_(pool), program_(plan.typed->make())
    {
        if (!plan.timed) {
            breeze::open_pool(pool).value()->parts().counts.stop();  // Counts change when the program says, so that runs are alike.
        }
    }

    void work()
    {
        root_ = nvm_pool_root(pool_);
        tell_recovered();
        ObjectNotes::begin();
        if (root_ == nullptr) {
            begin();
            root_ = program_->make_root(pool_);
            if (root_ == nullptr || nvm_pool_set_root(pool_, root_) != SP_OK) {
                refused("no root");
            }
            for (unsigned part = 0; part < plan_.typed->parts; ++part) {
                ObjectNotes::state(part, program_->digest(root_, part));
            }
            commit();
            for (unsigned part = 0; part < plan_.typed->parts; ++part) {
                ObjectNotes::acknowledged(part, program_->digest(root_, part));
            }
        }
        if (plan_.typed->parts == 1) {
            work_on(0);
            return;
        }
        Threads threads;
        for (unsigned part = 0; part < plan_.typed->parts; ++part) {
            threads.run([this, part] { work_on(part); });
        }
        threads.join();
    }

private:
    void tell_recovered()
    {
        for (unsigned part = 0; part < plan_.typed->parts; ++part) {
            const std::uint64_t digest = root_ != nullptr ? program_->digest(root_, part) : absent;
            sim::record(sim::EventKind::part_recovered, part, nullptr, 0, digest);
        }
        // Numbers that rise from run to run: the pool has no epochs.
        sim::record(sim::EventKind::acknowledge, 0, nullptr, plan_.run, 1);
    }

    void begin()
    {
        if (nvm_tx_begin(pool_) != SP_OK) {
            refused("no transaction");
        }
    }

    void commit()
    {
        if (nvm_tx_commit(pool_) != SP_OK) {
            refused("no commit");
        }
    }

    void work_on(unsigned part)
    {
        Random random(((plan_.seed * 1'000'003 + plan_.run) * 1'000'003) + part);
        for (std::uint64_t i = 0; i < plan_.operations; ++i) {
            begin();
            program_->change(pool_, root_, part, random);
            if (random() % 6 == 0) {
                if (nvm_tx_abort(pool_) != SP_OK) {
                    refused("no abort");
                }
                continue;
            }
            const std::uint64_t digest = program_->digest(root_, part);
            ObjectNotes::state(part, digest);
            commit();
            ObjectNotes::acknowledged(part, digest);
            if (random() % 3 == 0 && nvm_drain(pool_) != SP_OK) {
                refused("counts are not drained");
            }
            if (plan_.typed->makes_cycles && random() % 4 == 0 && nvm_collect(pool_, nullptr) != SP_OK) {
                refused("no collection");
            }
        }
    }

    const ProgramPlan& plan_;
    NVM_POOL* pool_;
    std::unique_ptr<TypedProgram> program_;
    void* root_ = nullptr;
};

/// Keeps the first damage, and what cannot be reached.
class Examined final : public Findings {
public:
    std::string damage_text;
    std::string remark_text;

private:
    void tell(const Failure& failure, bool is_damage) override
    {
        std::string& text = is_damage ? damage_text : remark_text;
        text = text.empty() ? std::string(failure.text()) : text;
    }
};

/// The parts of an open pool whose objects are sound. Throws as TypedProgram::digest.
PartDigests parts_of(const ProgramPlan& plan, breeze::BreezePool& pool)
{
    PartDigests parts;
    const std::uint64_t root = pool.parts().memory.header().root;
    const auto program = plan.typed->make();
    for (unsigned part = 0; part < plan.typed->parts && root != 0; ++part) {
        parts[part] = program->digest(pool.parts().bytes_of(root), part);
    }
    return parts;
}

std::string examine(const ProgramPlan& plan, breeze::BreezePool& pool, Recovered& recovered)
{
    Examined examined;
    if (auto done = breeze::examine_objects(pool, examined); !done) {
        return done.error().message;
    }
    if (!examined.damage_text.empty()) {
        return examined.damage_text;
    }
    if (!examined.remark_text.empty() && !plan.typed->makes_cycles) {
        return examined.remark_text;
    }
    recovered.parts = parts_of(plan, pool);
    if (auto collected = pool.collect(); !collected) {
        return collected.error().message;
    }
    Examined afterwards;
    if (auto done = breeze::examine_objects(pool, afterwards); !done) {
        return done.error().message;
    }
    if (!afterwards.damage_text.empty() || !afterwards.remark_text.empty()) {
        return "after a collection: " + afterwards.damage_text + afterwards.remark_text;
    }
    return parts_of(plan, pool) == recovered.parts ? "" : "a collection has changed what can be reached";
}

}  // namespace

std::string run_typed(const ProgramPlan& plan)
{
    os::set_least_severity(os::Severity::error);
    const nvm_options options = options_of(plan);
    NVM_POOL* pool = nvm_pool_open_with(path, &options);
    if (pool == nullptr) {
        pool = nvm_pool_create_with(path, pool_bytes, &options);
    }
    if (pool == nullptr) {
        return plan.failing_sync == UINT64_MAX ? std::string("the pool does not open: ") + sp_last_error() : "";
    }
    try {
        Run(plan, pool).work();
    } catch (const std::exception& error) {
        return plan.failing_sync == UINT64_MAX ? error.what() : "";
    }
    if (plan.ends_normally && nvm_pool_close(pool) != SP_OK && plan.failing_sync == UINT64_MAX) {
        return std::string("the pool does not close: ") + sp_last_error();
    }
    return "";
}

Recovered recover_typed(const ProgramPlan& plan, const sim::CrashImage& image)
{
    Recovered recovered;
    os::set_least_severity(os::Severity::error);
    const auto pool = Pool::open(std::make_unique<sim::ImageMedium>(image.content, byte_addressable(plan), image.unreadable_sector),
                                 EngineFormat{}, true);
    if (!pool) {
        const bool never_finished = pool.error().code == SP_E_NOT_A_POOL;
        recovered.kind = never_finished ? Recovered::Kind::nothing : Recovered::Kind::refused;
        recovered.problem = never_finished ? "" : pool.error().message;
        return recovered;
    }
    Examined damaged;
    const std::uint64_t number = image.digest();
    auto opened = breeze::open_copy(*pool, damaged, nullptr, number % 2 == 0 ? 0 : place(number / 2));
    if (!opened || !damaged.damage_text.empty()) {
        recovered.kind = Recovered::Kind::refused;
        recovered.problem = opened ? damaged.damage_text : std::string(opened.error().message);
        return recovered;
    }
    recovered.kind = Recovered::Kind::state;
    recovered.epoch = 1;
    try {
        recovered.problem = examine(plan, **opened, recovered);
    } catch (const std::exception& error) {
        recovered.problem = error.what();
    }
    return recovered;
}

}  // namespace stillpoint::explorer
