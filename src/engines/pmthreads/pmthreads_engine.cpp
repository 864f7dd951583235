#include "engines/pmthreads/pmthreads_engine.hpp"

#include "engines/pmthreads/advice.hpp"
#include "engines/pmthreads/own_options.hpp"
#include "engines/pmthreads/own_statistics.hpp"
#include "engines/pmthreads/pmthreads_layout.hpp"

#include <algorithm>
#include <mutex>

#include "versions/offline.hpp"
#include "versions/room.hpp"
#include "versions/salvage.hpp"
#include "versions/trim.hpp"
#include "os/log.hpp"
#include "runtime/instrumented_units.hpp"
#include "runtime/kernel_writes.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint::pmthreads {

namespace {

std::unique_ptr<Engine> make() { return std::make_unique<PmthreadsEngine>(); }

constexpr std::string_view trackers[] = {"uffd", "mprotect", "hooks"};
constexpr std::uint64_t interval_ms = 100;  // [PMThreads §6]

Result<void> check_own_options(const Options& options)
{
    const OwnOptions own{options};
    if (own.verify_marks && own.tracker != "hooks") {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "option verify_marks compares the marks of the tracker hooks, and the tracker is {}; use --tracker hooks", own.tracker);
    }
    return {};
}

constexpr EngineFormat newest_format{"pmthreads",
                                     layout_version,
                                     engine_area_pages,
                                     &versions::segment_file_pages_with_deltas,
                                     1,
                                     &versions::pages_without_room_with_deltas};
/// The option reserve=all: whatever was left out when the pool was made.
constexpr EngineFormat format_with_all_room{"pmthreads", layout_version, engine_area_pages, &versions::segment_file_pages_with_deltas};
constexpr EngineFormat older_formats[] = {{"pmthreads", layout_version_without_deltas, engine_area_pages, &versions::segment_file_pages}};

bool has_delta_log(const Pool& pool) noexcept { return pool.facts().engine_layout_version >= layout_version; }

Result<RecoveryReport> inspect(const Pool& pool) { return versions::inspect_pool(pool, has_delta_log(pool)); }

Result<RecoveryReport> check(const Pool& pool, Findings* findings,
                             Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes), void* context,
                             void (*progress)(std::uint64_t done, std::uint64_t total))
{
    return versions::check_pool(pool, has_delta_log(pool), findings, visit_image, context, progress);
}

Result<SalvageReport> salvage(Pool& pool) { return versions::salvage_pool(pool, has_delta_log(pool)); }
Result<void> trim(Pool& pool) { return versions::trim_pool(pool, has_delta_log(pool)); }

}  // namespace

EngineDriver driver() noexcept
{
    return {.format = newest_format,
            .make = &make,
            .inspect = &inspect,
            .check = &check,
            .table_format = layout::TableFormat::plain,
            .interval_ms = interval_ms,
            .trackers = trackers,
            .sums_program_bytes = true,
            .options = own_option_rows,
            .check_options = &check_own_options,
            .statistics = own_statistic_rows,
            .advice = &advice,
            .more_formats = older_formats,
            .salvage = &salvage,
            .trim = &trim};
}

PmthreadsEngine::~PmthreadsEngine() { loader_.stop(); }

Result<RecoveryReport> PmthreadsEngine::start(Pool pool, const Options& options)
{
    pool_ = std::make_unique<Pool>(std::move(pool));
    const PoolFacts& facts = pool_->facts();
    const bool has_log = has_delta_log(*pool_);
    const bool may_be_late = has_log && pool_->medium().room() == Room::in_memory;
    takes_all_room_ = may_be_late && OwnOptions{options}.reserve == "all";
    const bool has_late_room = may_be_late && !takes_all_room_;
    if (has_late_room) {
        locations_.expect_late_second_copies();
        deltas_.log.expect_late_room();
    }
    auto recovered = recover_table(has_log ? &deltas_ : nullptr);
    if (!recovered) {
        return recovered;
    }
    if (has_late_room) {
        versions::note_first_copies_without_room(*pool_, newest_format, table_, locations_);
    }
    RecoveryReport report = *recovered;
    if (auto reserved = kernel_writes::reserve(); !reserved) {
        return pass_on(reserved.error());
    }
    if (auto chosen = choose_tracker(options, facts.image_bytes_max); !chosen) {
        return pass_on(chosen.error());
    }
    const auto pages = tracker_->allows_huge_pages() ? Shadow::Pages::huge : Shadow::Pages::small;
    if (auto done = shadow_.map(facts.base_address, facts.image_bytes, facts.image_bytes_max, pages); !done) {
        return pass_on(done.error());
    }
    if (auto done = load_image(options.recovery, report); !done) {
        return pass_on(done.error());
    }
    const std::uint64_t staging_pages = options.staging_max_mb * mib / page_bytes;
    checkpointer_ = std::make_unique<Checkpointer>(
        Checkpointer::Parts{pool_.get(), &shadow_, tracker_.get(), &table_, &locations_, has_log ? &deltas_.log : nullptr, &medium_lock_,
                            &clock_},
        Checkpointer::Settings{options.interval_ms * 1'000'000, options.stop_attempt_ms * 1'000'000, staging_pages,
                               facts.image_bytes_max / page_bytes});
    if (auto done = checkpointer_->prepare(); !done) {
        return pass_on(done.error());
    }
    publish_start();
    return report;
}

/// A pool in memory gets what was left out when it was made.
Result<void> PmthreadsEngine::take_all_room()
{
    for (const Segment& segment : pool_->segments()) {
        const FilePageRange pages{segment.first_file_page, segment.first_file_page + segment.file_pages};
        if (auto taken = pool_->medium().allocate(pages.bytes()); !taken) {
            return taken;
        }
    }
    return {};
}

Result<void> PmthreadsEngine::choose_tracker(const Options& options, std::uint64_t image_bytes_max)
{
    const OwnOptions own{options};
    Result<std::uint64_t> marking_units = 0;
    if (own.tracker == "hooks" && !(marking_units = count_marking_units({newest_format.name, true}))) {
        return pass_on(marking_units.error());
    }
    auto tracker = make_tracker(own.tracker, image_bytes_max, own.verify_marks);
    if (!tracker) {
        return pass_on(tracker.error());
    }
    tracker_ = std::move(*tracker);
    tracker_name_ = tracker_->name();
    if (*marking_units != 0) {
        tracker_name_ += " (" + std::to_string(*marking_units) + (*marking_units == 1 ? " instrumented unit)" : " instrumented units)");
    }
    return {};
}

Result<void> PmthreadsEngine::load_image(std::string_view choice, RecoveryReport& report)
{
    std::byte* const base = shadow_.base();
    const std::uint64_t loaded_bytes = pages_end_ * page_bytes;
    os::Userfaultfd* const uffd = tracker_->userfaultfd();
    const bool lazy_possible = uffd != nullptr && uffd->scope() == os::Userfaultfd::Scope::user_and_kernel;
    if (choice == "lazy" && !lazy_possible) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "recovery=lazy needs the tracker uffd or hooks and a userfaultfd that also serves system "
                    "calls (root, CAP_SYS_PTRACE, or sysctl vm.unprivileged_userfaultfd=1)");
    }
    report.lazy = pages_end_ != 0 && lazy_possible && choice != "eager";
    if (auto done = load_pages(report.lazy, nullptr, &deltas_.replay); !done) {
        return done;
    }
    if (auto done = tracker_->add_range(base, shadow_.bytes(), report.lazy ? loaded_bytes : 0); !done) {
        return done;
    }
    return report.lazy ? loader_.start_lazy(base, *uffd) : Result<void>{};
}

Result<void> PmthreadsEngine::start_checkpoints()
{
    if (auto taken = takes_all_room_ ? take_all_room() : Result<void>{}; !taken) {
        return taken;
    }
    own_statistic(OwnStatistic::tracker).store(static_cast<std::uint64_t>(number_of_tracker(tracker_->name())), std::memory_order_relaxed);
    return checkpointer_->start();
}

bool PmthreadsEngine::end_checkpoints(bool clean) noexcept { return clean && checkpointer_->finish(); }

void PmthreadsEngine::request_checkpoint() noexcept { checkpointer_->request(); }

void PmthreadsEngine::announce_segment(const Segment& segment) noexcept { checkpointer_->announce_segment(segment); }

void PmthreadsEngine::detach_parts_after_fork() noexcept
{
    checkpointer_->detach_after_fork();
    tracker_->detach_after_fork();
}

Result<std::uint64_t> PmthreadsEngine::grow(std::uint64_t wanted)
{
    if (auto allowed = check_may_grow(); !allowed) {
        return pass_on(allowed.error());
    }
    const std::lock_guard guard(medium_lock_);
    if (wanted <= shadow_.bytes()) {
        return shadow_.bytes();
    }
    const auto grown = grow_pool(wanted, !has_delta_log(*pool_) ? older_formats[0]
                                         : takes_all_room_      ? format_with_all_room
                                                                : newest_format);
    if (!grown) {
        return grown;
    }
    const std::uint64_t bytes = *grown;
    const std::uint64_t bytes_before = shadow_.bytes();
    if (auto done = shadow_.make_accessible(bytes); !done) {
        return pass_on(done.error());
    }
    if (auto done = tracker_->add_range(shadow_.base() + bytes_before, bytes - bytes_before, 0); !done) {
        return pass_on(done.error());
    }
    shadow_.publish(bytes);
    statistics_of(statistics_number).image_bytes.store(bytes, std::memory_order_relaxed);
    return bytes;
}

Result<void> PmthreadsEngine::mirror(const MirroredRange& range) { return checkpointer_->mirror(range); }

bool PmthreadsEngine::handle_fault(void* address) noexcept { return tracker_->handle_fault(address); }

bool PmthreadsEngine::needs_fault_handler() const noexcept { return tracker_->needs_fault_handler(); }

void PmthreadsEngine::prepare_kernel_write(void* address, std::size_t size) noexcept { tracker_->prepare_kernel_write(address, size); }

void PmthreadsEngine::note_kernel_write(void* address, std::size_t size) noexcept { kernel_writes::note_stored(address, size); }

}  // namespace stillpoint::pmthreads
