#include "wholecopy/wholecopy_engine.hpp"

#include <cstring>
#include <mutex>

#include "os/clock.hpp"
#include "pool/commit_layout.hpp"
#include "runtime/checkpoint_figures.hpp"
#include "runtime/quiescence.hpp"
#include "runtime/statistics.hpp"
#include "runtime/sync_objects.hpp"
#include "versions/offline.hpp"

namespace stillpoint::wholecopy {

namespace {

constexpr std::uint64_t interval_ms = 50;
constexpr std::uint32_t layout_version = 1;
/// A page that has been zero since the pool was made has no copy.
constexpr versions::EpochWriter::WriteRules write_rules{.leaves_out_zero_pages = true};
/// Nothing is looked for: everything is written.
constexpr std::string_view trackers[] = {"everything"};

std::unique_ptr<Engine> make() { return std::make_unique<WholecopyEngine>(); }

constexpr EngineFormat format{"wholecopy", layout_version, commit_area_pages, &versions::segment_file_pages};

}  // namespace

EngineDriver driver() noexcept
{
    return {.format = format,
            .make = &make,
            .inspect = &versions::inspect_pool,
            .check = &versions::check_pool,
            .table_format = layout::TableFormat::plain,
            .interval_ms = interval_ms,
            .trackers = trackers,
            .sums_program_bytes = true};
}

Result<RecoveryReport> WholecopyEngine::start(Pool pool, const Options& options)
{
    pool_ = std::make_unique<Pool>(std::move(pool));
    const PoolFacts& facts = pool_->facts();
    auto report = recover_table();
    if (!report) {
        return report;
    }
    if (options.recovery == "lazy") {
        return fail(SP_E_UNSUPPORTED, 0, "recovery=lazy needs an engine that serves first touches; use recovery=eager");
    }
    if (auto done = shadow_.map(facts.base_address, facts.image_bytes, facts.image_bytes_max, Shadow::Pages::huge); !done) {
        return pass_on(done.error());
    }
    writer_ = std::make_unique<versions::EpochWriter>(*pool_, table_, locations_, medium_lock_, write_rules);
    if (auto done = writer_->reserve(facts.image_bytes_max / page_bytes); !done) {
        return pass_on(done.error());
    }
    if (auto done = load_pages(false, writer_->content_hashes()); !done) {
        return pass_on(done.error());
    }
    if (auto done = copy_.reserve(facts.image_bytes_max, "a copy of the image"); !done) {
        return pass_on(done.error());
    }
    stop_attempt_ns_ = options.stop_attempt_ms * 1'000'000;
    const auto take = [](void* self, const CheckpointTurns::Facts& turn) noexcept {
        return static_cast<WholecopyEngine*>(self)->take_checkpoint(turn.last);
    };
    turns_ = std::make_unique<CheckpointTurns>(options.interval_ms * 1'000'000, take, this);
    publish_start();
    return report;
}

Result<std::uint64_t> WholecopyEngine::grow(std::uint64_t wanted)
{
    if (auto allowed = check_may_grow(); !allowed) {
        return pass_on(allowed.error());
    }
    const std::lock_guard guard(medium_lock_);
    if (wanted <= shadow_.bytes()) {
        return shadow_.bytes();
    }
    const auto grown = grow_pool(wanted, format);
    if (!grown) {
        return grown;
    }
    if (auto done = shadow_.make_accessible(*grown); !done) {
        return pass_on(done.error());
    }
    shadow_.publish(*grown);
    statistics().image_bytes.store(*grown, std::memory_order_relaxed);
    return *grown;
}

void WholecopyEngine::copy_in_stop() noexcept
{
    announced_.absorb(table_, locations_);
    const auto nothing_to_prepare = [](void*, std::byte*, std::size_t) {};
    const SyncObjectsCapture objects(shadow_.base(), nothing_to_prepare, this);
    mirrored_.update([](std::byte*, std::size_t) {});
    copied_bytes_ = shadow_.bytes();
    std::memcpy(copy_.data(), shadow_.base(), copied_bytes_);
    captured_epoch_ = clock_.advance();
    captured_ns_ = os::monotonic_ns();
    captured_unix_ns_ = os::wall_clock_ns();
}

Result<void> WholecopyEngine::write_copy(bool clean) noexcept
{
    const std::uint64_t pages = copied_bytes_ / page_bytes;
    writer_->begin(captured_epoch_);
    for (std::uint64_t page = 0; page < pages; ++page) {
        if (auto written = writer_->write_page(page, page, copy_.data() + page * page_bytes, false); !written) {
            return pass_on(written.error());
        }
    }
    return writer_->commit({captured_epoch_, pages, captured_unix_ns_, clean});
}

CheckpointTurn WholecopyEngine::take_checkpoint(bool last) noexcept
{
    if (clock_.failed()) {
        return CheckpointTurn::failed;
    }
    const auto copy = [](void* self) noexcept { static_cast<WholecopyEngine*>(self)->copy_in_stop(); };
    const StopReport stop = stop_threads(stop_attempt_ns_, copy, this);
    if (!stop.reached) {
        note_withdrawn(stop);
        return CheckpointTurn::withdrawn;
    }
    record_stop(clock_.running(), stop_length_ns(stop), stop.wait_ns);
    const std::uint64_t write_begun_ns = os::monotonic_ns();
    if (auto written = write_copy(last); !written) {
        give_up_durability(clock_, written.error());
        return CheckpointTurn::failed;
    }
    record_commit(captured_epoch_, captured_ns_, os::monotonic_ns() - write_begun_ns, pool_->medium());
    clock_.set_durable(captured_epoch_);
    return CheckpointTurn::committed;
}

}  // namespace stillpoint::wholecopy
