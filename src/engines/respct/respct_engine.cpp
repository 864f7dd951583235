#include "engines/respct/respct_engine.hpp"

#include <mutex>
#include <utility>

#include "core/logged_words.hpp"
#include "core/store_marks.hpp"
#include "engines/respct/lint_rules.hpp"
#include "engines/respct/offline.hpp"
#include "engines/respct/own_options.hpp"
#include "engines/respct/own_statistics.hpp"
#include "engines/respct/recovery.hpp"
#include "engines/respct/salvage.hpp"
#include "engines/respct/thread.hpp"
#include "os/log.hpp"
#include "pool/commit_record.hpp"
#include "runtime/fase.hpp"
#include "runtime/held_locks.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint::respct {

namespace {

std::unique_ptr<Engine> make() { return std::make_unique<RespctEngine>(); }

constexpr EngineFormat format{"respct", layout_version, commit_area_pages, &segment_file_pages, huge_page_bytes / page_bytes};
constexpr std::uint64_t interval_ms = 64;  // [ResPCT §5]

/// The one that runs: notes come from anywhere in the library.
RespctEngine* noting_engine = nullptr;

}  // namespace

EngineDriver driver() noexcept
{
    return {.format = format,
            .make = &make,
            .inspect = &inspect_pool,
            .check = &check_pool,
            .table_format = layout::TableFormat::logged,
            .interval_ms = interval_ms,
            .options = own_option_rows,
            .statistics = own_statistic_rows,
            .lint = lint_rules,
            .programs = Programs::restart_points,
            .salvage = &salvage_pool};
}

RespctEngine::~RespctEngine() { give_notes_back(); }

Result<RecoveryReport> RespctEngine::start(Pool pool, const Options& options)
{
    if (options.recovery != "auto") {
        os::log(os::Severity::warning,
                "--recovery has no meaning with the engine respct, and is ignored: its programs announce their stores themselves");
    }
    pool_ = std::make_unique<Pool>(std::move(pool));
    const PoolFacts& facts = pool_->facts();
    heap_offset_ = geometry_of(facts).heap_offset;
    if (auto mapped = memory_.map(*pool_, heap_offset_); !mapped) {
        return pass_on(mapped.error());
    }
    auto recovered = recover_image({pool_.get(), memory_.base(), memory_.in_place()}, tables_);
    if (!recovered) {
        return pass_on(recovered.error());
    }
    if (auto prepared = writer_.prepare(memory_, *pool_); !prepared) {
        return pass_on(prepared.error());
    }
    for (const std::uintptr_t line : recovered->changed_lines) {
        writer_.add_recovered(line);
    }
    const auto flush = OwnOptions{options}.respct_flush == "stop" ? Checkpointer::Flush::in_stop : Checkpointer::Flush::in_background;
    checkpointer_.emplace(Checkpointer::Parts{pool_.get(), &memory_, &writer_, &tables_, &medium_lock_, &clock_},
                          Checkpointer::Settings{options.interval_ms * 1'000'000, options.stop_attempt_ms * 1'000'000, flush});
    const RunFacts& runs = recovered->runs;
    clock_.set(runs.next_epoch, runs.epoch);
    take_over_notes(runs.next_epoch, runs.epoch);
    Statistics& figures = statistics();
    figures.image_bytes.store(facts.image_bytes, std::memory_order_relaxed);
    figures.epoch.store(runs.next_epoch, std::memory_order_relaxed);
    figures.durable_epoch.store(runs.epoch, std::memory_order_release);
    figures.pages_loaded.store(recovered->pages_read, std::memory_order_relaxed);
    if (memory_.in_place()) {
        changes_ = std::move(recovered->changes);
    }
    RecoveryReport report;
    report.epoch = runs.epoch;
    report.clean = !runs.after_crash;
    // Free spans of a file were not read; those of a mapping may be in the caches only, if a process died.
    report.free_memory_is_unknown = runs.after_crash || (!memory_.in_place() && runs.epoch != 0);
    report.captured_unix_ns = runs.captured_unix_ns;
    report.pages_rolled_back = recovered->variables_rolled_back;
    report.rolled_back = "logged variables rolled back";
    report.pages_present = recovered->pages_read;
    return report;
}

void RespctEngine::note_store_of_library(const void* address, std::size_t size_bytes) noexcept
{
    RespctEngine& engine = *noting_engine;
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - engine.memory_.base());
    if (offset < engine.heap_offset_) {
        engine.tables_.note(address, size_bytes);
    } else if (offset < engine.memory_.bytes() && size_bytes <= engine.memory_.bytes() - offset) {
        // The epoch must not end between the store and this, nor in the middle of this.
        const FaseGuard fase;
        note_lines(address, size_bytes);
    }
}

void RespctEngine::take_over_notes(std::uint64_t next_epoch, std::uint64_t durable) noexcept
{
    noting_engine = this;
    notes_taken_ = true;
    logged::durable_epoch.store(durable, std::memory_order_release);
    set_running_epoch(next_epoch);
    held_locks::set_own_locks(&locks_counted);
    CollectedLines::forget_all();
    store_marks::want_calls(&note_store_of_library);
    respct::image_bytes.store(memory_.bytes(), std::memory_order_release);
    set_active(true);
}

void RespctEngine::give_notes_back() noexcept
{
    if (!notes_taken_) {
        return;
    }
    notes_taken_ = false;
    set_active(false);
    store_marks::want_nothing();
    noting_engine = nullptr;
    set_running_epoch(0);
}

Result<void> RespctEngine::run()
{
    // From here on nothing refuses the pool: what recovery has changed in a copy may be changed in the medium.
    if (memory_.in_place()) {
        if (auto shared = memory_.share(*pool_); !shared) {
            return shared;
        }
    }
    {
        const std::lock_guard guard(medium_lock_);
        // Where a process was killed, and not the machine, recovery has read a record that may still be in the CPU's caches only.
        write_back_commit_records(*pool_);
        if (auto begun = begin_run(*pool_); !begun) {
            return begun;
        }
    }
    make_changes(std::exchange(changes_, {}), clock_.durable());
    if (auto started = checkpointer_->start(); !started) {
        return started;
    }
    if (auto started = huge_pages_.start(memory_); !started) {
        os::log(os::Severity::warning, "{}; durable memory stays in small pages", started.error().text());
    }
    return {};
}

Result<void> RespctEngine::stop(bool clean)
{
    huge_pages_.stop();
    const bool finished = clean && checkpointer_->finish();
    if (clock_.failed()) {
        return pass_on(clock_.failure());
    }
    if (!finished) {
        return fail(SP_E_TIMED_OUT, 0, "no last checkpoint: a thread passed no restart point in time; the pool stays at epoch {}",
                    clock_.durable());
    }
    return {};
}

void RespctEngine::detach_after_fork() noexcept
{
    detached_ = true;
    reset_after_fork();
    checkpointer_->detach_after_fork();
    huge_pages_.detach_after_fork();
    give_notes_back();
    memory_.make_private_after_fork(*pool_);
    pool_->medium().detach_after_fork();
}

Result<std::uint64_t> RespctEngine::grow(std::uint64_t wanted)
{
    if (detached_) {
        return fail(SP_E_DETACHED, 0, "a child made by fork cannot grow its parent's pool");
    }
    const std::lock_guard guard(medium_lock_);
    if (wanted <= memory_.bytes()) {
        return memory_.bytes();
    }
    if (auto grown = pool_->grow(wanted, format); !grown) {
        return pass_on(grown.error());
    }
    const std::uint64_t bytes = pool_->facts().image_bytes;
    if (auto extended = memory_.extend(*pool_, bytes); !extended) {
        return pass_on(extended.error());
    }
    respct::image_bytes.store(bytes, std::memory_order_release);
    statistics_of(statistics_number).image_bytes.store(bytes, std::memory_order_relaxed);
    return bytes;
}

Result<void> RespctEngine::mirror(const MirroredRange&)
{
    return fail(SP_E_UNSUPPORTED, 0,
                "the program has SP_PERSISTENT variables, which the engine respct does not keep: put them into the pool as logged "
                "variables (stillpoint/respct.h), or use the default engine");
}

Result<void> RespctEngine::wait_durable(std::uint64_t epoch, std::uint64_t deadline_ns) { return clock_.wait_durable(epoch, deadline_ns); }

Result<void> RespctEngine::checkpoint_now()
{
    const std::uint64_t epoch = clock_.running();
    checkpointer_->request();
    return clock_.wait_durable(epoch, UINT64_MAX);
}

}  // namespace stillpoint::respct
