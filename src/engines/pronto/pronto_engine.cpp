#include "engines/pronto/pronto_engine.hpp"

#include <mutex>

#include "engines/pronto/log_layout.hpp"
#include "engines/pronto/offline_objects.hpp"
#include "engines/pronto/own_options.hpp"
#include "os/log.hpp"
#include "runtime/fase.hpp"
#include "runtime/session_state.hpp"
#include "runtime/statistics.hpp"
#include "versions/offline.hpp"
#include "versions/room.hpp"
#include "versions/salvage.hpp"
#include "versions/trim.hpp"

namespace stillpoint::pronto {

namespace {

std::unique_ptr<Engine> make() { return std::make_unique<ProntoEngine>(); }

constexpr std::string_view tracker = "pieces";
constexpr std::string_view trackers[] = {tracker};
constexpr std::uint64_t interval_ms = 10'000;

constexpr EngineFormat newest_format{"pronto",
                                     layout_version,
                                     engine_area_pages,
                                     &LogPart::segment_file_pages,
                                     1,
                                     &LogPart::pages_without_room,
                                     &LogPart::first_segment_file_pages};
constexpr EngineFormat older_formats[] = {{"pronto", layout_version_without_groups, engine_area_pages, &LogPart::segment_file_pages, 1,
                                           &LogPart::pages_without_room, &LogPart::first_segment_file_pages},
                                          {"pronto", layout_version_of_short_logs, engine_area_pages, &LogPart::segment_file_pages}};

}  // namespace

EngineDriver driver() noexcept
{
    return {.format = newest_format,
            .make = &make,
            .inspect = &versions::inspect_pool,
            .check = &versions::check_pool,
            .table_format = layout::TableFormat::plain,
            .interval_ms = interval_ms,
            .interval_means = "snapshots that shorten the logs: a crash loses nothing that was acknowledged",
            .trackers = trackers,
            .sums_program_bytes = true,
            .options = own_option_rows,
            .programs = Programs::operations,
            .shares_process = true,
            .facts = &object_facts,
            .more_formats = older_formats,
            .salvage = &versions::salvage_pool,
            .trim = &versions::trim_pool};
}

OperationLog* log_of_session(const Session& session) noexcept
{
    return session.driver->make == &make ? &*static_cast<ProntoEngine&>(*session.engine).log_ : nullptr;
}

ProntoEngine::~ProntoEngine() { loader_.stop(); }

Result<RecoveryReport> ProntoEngine::start(Pool pool, const Options& options)
{
    pool_ = std::make_unique<Pool>(std::move(pool));
    const PoolFacts& facts = pool_->facts();
    if (auto sound = check_segments(*format_of(driver(), facts.engine_layout_version)); !sound) {
        return pass_on(sound.error());
    }
    auto recovered = recover_table();
    if (!recovered) {
        return recovered;
    }
    RecoveryReport report = *recovered;
    if (auto done = shadow_.map(facts.base_address, facts.image_bytes, facts.image_bytes_max, Shadow::Pages::huge); !done) {
        return pass_on(done.error());
    }
    if (auto done = staging_.reserve(options.staging_max_mb * mib); !done) {
        return pass_on(done.error());
    }
    if (auto done = pieces_.reserve(facts.image_bytes_max); !done) {
        return pass_on(done.error());
    }
    snapshots_.emplace(
        SnapshotThread::Parts{pool_.get(), &shadow_, &pieces_, &staging_, &table_, &locations_, &medium_lock_, &clock_, &hooks_},
        SnapshotThread::Settings{options.interval_ms * 1'000'000, options.stop_attempt_ms * 1'000'000, facts.image_bytes_max / page_bytes});
    if (auto done = snapshots_->prepare(); !done) {
        return pass_on(done.error());
    }
    if (auto done = load_image(options.recovery, report); !done) {
        return pass_on(done.error());
    }
    if (auto done = start_log(options); !done) {
        return pass_on(done.error());
    }
    publish_start();
    // Objects say by their operations what is failure-atomic. A thread that holds a lock and waits for room in the log must
    // not keep the threads that wait for the lock from letting a snapshot happen. Set here, and not when the engine runs: a lock
    // that was counted must be released counted.
    fase_count_no_locks();
    return report;
}

Result<void> ProntoEngine::load_image(std::string_view choice, RecoveryReport& report)
{
    if (auto chosen = choose_loading(choice, true, report); !chosen) {
        return chosen;
    }
    if (auto done = load_pages(report.lazy, snapshots_->content_hashes()); !done) {
        return done;
    }
    if (auto done = pieces_.protect_all(); !done) {
        return done;
    }
    if (!report.lazy) {
        return {};
    }
    snapshots_->expect_small_pages();
    return serve_first_touches();
}

Result<void> ProntoEngine::start_checkpoints()
{
    if (auto started = snapshots_->start(); !started) {
        return started;
    }
    return log_->run();
}

bool ProntoEngine::end_checkpoints(bool clean) noexcept
{
    // The last snapshot has what the log has.
    const bool finished = clean && snapshots_->finish();
    log_->stop();
    return finished;
}

void ProntoEngine::request_checkpoint() noexcept { snapshots_->request(); }

void ProntoEngine::announce_segment(const Segment& segment) noexcept
{
    snapshots_->announce_segment(segment);
    log_->add_segment(segment);
}

void ProntoEngine::detach_parts_after_fork() noexcept
{
    log_->detach_after_fork();
    snapshots_->detach_after_fork();
    pieces_.detach_after_fork();
}

Result<std::uint64_t> ProntoEngine::grow(std::uint64_t wanted) { return grow_image(wanted, newest_format); }

Result<void> ProntoEngine::enlarge_image(std::uint64_t bytes) { return pieces_.grow(bytes); }

Result<void> ProntoEngine::start_log(const Options& options)
{
    const OwnOptions own{options};
    const auto use = own.pronto_logging == "async"  ? Siblings::Use::always
                     : own.pronto_logging == "sync" ? Siblings::Use::never
                                                    : Siblings::Use::measured;
    log_.emplace(links(), OperationLog::Settings{use, own.verify_replay, own.damaged_log == "cut", own.check_commit_order});
    hooks_ = {&*log_, [](void* log) noexcept { static_cast<OperationLog*>(log)->before_capture(); },
              [](void* log, std::uint64_t) noexcept { static_cast<OperationLog*>(log)->snapshot_durable(); },
              [](void* log) noexcept { static_cast<OperationLog*>(log)->note_idle(); }};
    return log_->recover(*pool_);
}

void ProntoEngine::fail_for_good(const Failure& failure) noexcept
{
    const std::lock_guard guard(failing_lock_);
    const StatisticsScope own(statistics_number);
    if (failure.code != SP_E_OBJECT_REFUSED && failure.code != SP_E_NOT_DETERMINISTIC) {
        give_up_durability(clock_, failure);
        return;
    }
    // Operations on other objects go on, while the log has room for them.
    statistics().last_error.store(static_cast<std::uint64_t>(failure.code), std::memory_order_relaxed);
    os::write_line(os::Severity::error, failure.text());
    clock_.fail_for_good(failure);
}

SnapshotLinks ProntoEngine::links() noexcept
{
    return {.engine = this,
            .pool = pool_.get(),
            .shadow = &shadow_,
            .medium_lock = &medium_lock_,
            .request_snapshot = [](void* engine) noexcept { static_cast<ProntoEngine*>(engine)->snapshots_->request(); },
            .snapshot_now = [](void* engine) { return static_cast<ProntoEngine*>(engine)->checkpoint_now(); },
            .is_writing = [](void* engine) noexcept { return static_cast<ProntoEngine*>(engine)->snapshots_->is_writing(); },
            .pages_of_last_snapshot = [](void* engine) noexcept { return static_cast<ProntoEngine*>(engine)->snapshots_->pages_copied(); },
            .give_up = [](void* engine, const Failure& failure) noexcept { static_cast<ProntoEngine*>(engine)->fail_for_good(failure); },
            .failure = [](void* engine) noexcept -> const Failure* {
                const EpochClock& clock = static_cast<ProntoEngine*>(engine)->clock_;
                return clock.failed() ? &clock.failure() : nullptr;
            },
            .prepare_write = [](void* engine, void* address,
                                std::size_t size) noexcept { static_cast<ProntoEngine*>(engine)->pieces_.prepare_write(address, size); }};
}

Result<void> ProntoEngine::mirror(const MirroredRange& range) { return snapshots_->mirror(range); }

bool ProntoEngine::handle_fault(void* address) noexcept { return pieces_.handle_fault(address); }

void ProntoEngine::prepare_kernel_write(void* address, std::size_t size) noexcept { pieces_.prepare_write(address, size); }

/// A piece that a snapshot has copied meanwhile counts as written again.
void ProntoEngine::note_kernel_write(void* address, std::size_t size) noexcept { pieces_.prepare_write(address, size); }

std::string_view ProntoEngine::tracker_name() const noexcept { return tracker; }

}  // namespace stillpoint::pronto
