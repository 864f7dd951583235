#include "engines/nvthreads/nvthreads_engine.hpp"

#include <algorithm>

#include "core/store_marks.hpp"
#include "engines/nvthreads/nvthreads_layout.hpp"
#include "engines/nvthreads/offline_logs.hpp"
#include "engines/nvthreads/own_options.hpp"
#include "engines/nvthreads/own_statistics.hpp"
#include "engines/nvthreads/processes/divide.hpp"
#include "logs/offline_logs.hpp"
#include "runtime/fase.hpp"
#include "runtime/instrumented_units.hpp"
#include "runtime/session_process.hpp"
#include "runtime/session_state.hpp"
#include "runtime/statistics.hpp"
#include "versions/room.hpp"
#include "versions/salvage.hpp"
#include "versions/trim.hpp"

namespace stillpoint::nvthreads {

namespace {

std::unique_ptr<Engine> make() { return std::make_unique<NvthreadsEngine>(); }

constexpr std::string_view tracker = "hooks";
constexpr std::string_view trackers[] = {tracker};
constexpr std::uint64_t interval_ms = 10'000;
constexpr unsigned replayers = 1;
constexpr std::uint64_t ns_per_ms = 1'000'000;

constexpr EngineFormat newest_format{"nvthreads",
                                     layout_version,
                                     logs::engine_area_pages,
                                     &logs::LogPart::segment_file_pages,
                                     1,
                                     &logs::LogPart::pages_without_room,
                                     &logs::LogPart::first_segment_file_pages};
constexpr EngineFormat older_formats[] = {
    {"nvthreads", layout_version_of_short_logs, logs::engine_area_pages, &logs::LogPart::segment_file_pages}};

/// The engine of this process, for those that tell of stores and locks.
constinit std::atomic<NvthreadsEngine*> running{nullptr};

Acknowledge acknowledge_for(std::string_view word, const Medium& medium) noexcept
{
    if (word == "auto") {
        return medium.byte_addressable() ? Acknowledge::unlock : Acknowledge::order;
    }
    return word == "unlock" ? Acknowledge::unlock : Acknowledge::order;
}

bool wants_shared_heap(const Options& options) { return OwnOptions{options}.threads == "processes"; }

}  // namespace

EngineDriver driver() noexcept
{
    return {.format = newest_format,
            .make = &make,
            .inspect = &logs::inspect_pool,
            .check = &check_pool,
            .table_format = layout::TableFormat::plain,
            .interval_ms = interval_ms,
            .interval_means = "replays of the logs, so that a restart has less to replay: what a crash can lose is said by acknowledge",
            .trackers = trackers,
            .sums_program_bytes = true,
            .options = own_option_rows,
            .statistics = own_statistic_rows,
            .wants_shared_heap = &wants_shared_heap,
            .programs = Programs::critical_sections,
            .facts = &log_facts,
            .more_formats = older_formats,
            .salvage = &versions::salvage_pool,
            .trim = &versions::trim_pool};
}

NvthreadsEngine::~NvthreadsEngine()
{
    if (running.load(std::memory_order_relaxed) == this) {
        listen_no_more();
    }
    loader_.stop();
    rounds_.reset();
}

// ---- Stores and locks of the program ------------------------------------------------------------

void NvthreadsEngine::note_store_of_program(const void* address, std::size_t size) noexcept
{
    if (NvthreadsEngine* const engine = running.load(std::memory_order_acquire); engine != nullptr) {
        engine->logs_.add(address, size);
    }
}

void NvthreadsEngine::note_store_of_library(const void* address, std::size_t size) noexcept
{
    if (NvthreadsEngine* const engine = running.load(std::memory_order_acquire); engine != nullptr) {
        engine->logs_.add_shared(address, size);
    }
}

/// A block that is allocated is the thread's own, and so is a small one that it has freed, until pass_blocks(). The spans of a large one
/// may be another's at once: what the thread has stored into them is handed over with their state, and so comes before what the next
/// owner stores.
void NvthreadsEngine::note_block_state(const void* address, std::size_t size) noexcept
{
    constexpr std::size_t mark_bytes = 1;
    constexpr std::size_t block_state_bytes_max = 4;
    const auto is_free = [=] {
        const auto* const bytes = static_cast<const std::byte*>(address);
        return std::all_of(bytes, bytes + size, [](std::byte byte) { return byte == std::byte{0}; });
    };
    const bool is_own = size == mark_bytes || (size <= block_state_bytes_max && !is_free());
    is_own ? note_store_of_program(address, size) : note_store_of_library(address, size);
}

/// The stores into blocks that it has freed, and those that say that they are free, come before what other threads store there.
void NvthreadsEngine::pass_blocks() noexcept
{
    hand_over(inside_fase() ? section_ends::Handover::inside : section_ends::Handover::outside);
}

void NvthreadsEngine::hand_over(section_ends::Handover handover) noexcept
{
    if (NvthreadsEngine* const engine = running.load(std::memory_order_acquire); engine != nullptr) {
        engine->logs_.hand_over(handover);
    }
}

void NvthreadsEngine::section_ended() noexcept
{
    if (NvthreadsEngine* const engine = running.load(std::memory_order_acquire); engine != nullptr) {
        engine->logs_.acknowledge();
    }
}

void NvthreadsEngine::listen() noexcept
{
    static constexpr section_ends::Calls calls{&hand_over, &section_ended};
    running.store(this, std::memory_order_release);
    store_marks::want_calls(&note_store_of_library, &note_block_state, &note_store_of_program);
    store_marks::want_passing_blocks(&pass_blocks);
    section_ends::want(calls);
}

void NvthreadsEngine::listen_no_more() noexcept
{
    section_ends::want_nothing();
    store_marks::want_nothing();
    running.store(nullptr, std::memory_order_release);
}

// ---- Opening and closing ------------------------------------------------------------------------

Result<RecoveryReport> NvthreadsEngine::start(Pool pool, const Options& options)
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
    const OwnOptions own{options};
    divides_ = own.threads == "processes";
    if (divides_) {
        if (auto possible = processes::check_divisible(); !possible) {
            return pass_on(possible.error());
        }
    }
    const auto pages = divides_ ? Shadow::Pages::shared : Shadow::Pages::huge;
    if (auto done = shadow_.map(facts.base_address, facts.image_bytes, facts.image_bytes_max, pages); !done) {
        return pass_on(done.error());
    }
    const auto request = [](void* self) noexcept { static_cast<NvthreadsEngine*>(self)->request_checkpoint(); };
    const auto give_up = [](void* self, const Failure& failure) noexcept {
        auto& engine = *static_cast<NvthreadsEngine*>(self);
        const StatisticsScope own_figures(engine.statistics_number);
        give_up_durability(engine.clock_, failure);
    };
    if (auto named = name_tracker(); !named) {
        return pass_on(named.error());
    }
    wait_max_ns_ = own.open_section_max_ms * ns_per_ms;
    if (auto done = logs_.prepare({pool_.get(), &medium_lock_, &shadow_, facts.image_bytes_max,
                                   acknowledge_for(own.acknowledge, pool_->medium()), own.section_markers != "always",
                                   own.order_delay_ms * ns_per_ms, own.loss_max_ms * ns_per_ms, wait_max_ns_, statistics_number, request,
                                   give_up, this});
        !done) {
        return pass_on(done.error());
    }
    if (auto done = prepare_replay(logs_, options, replayers); !done) {
        return pass_on(done.error());
    }
    if (auto done = load_pages(false); !done) {
        return pass_on(done.error());
    }
    if (auto done = recover_logs(report.epoch, report); !done) {
        return pass_on(done.error());
    }
    publish_start();
    listen();
    return report;
}

Result<void> NvthreadsEngine::name_tracker()
{
    if (divides_) {
        tracker_name_ = "private pages (processes)";
        return {};
    }
    const auto marking_units = count_marking_units({newest_format.name, false});
    if (!marking_units) {
        return pass_on(marking_units.error());
    }
    tracker_name_ = std::string(tracker) + " (" + std::to_string(*marking_units) +
                    (*marking_units == 1 ? " instrumented unit)" : " instrumented units)");
    return {};
}

Result<std::optional<ProgramEnd>> NvthreadsEngine::divide_program()
{
    if (!divides_) {
        return std::nullopt;
    }
    return processes::divide({&logs_, &shadow_, pool_->facts().image_bytes_max, wait_max_ns_, statistics_number});
}

std::uint64_t NvthreadsEngine::epoch() const noexcept
{
    return processes::is_program() ? session_process::there([this] { return ImageEngine::epoch(); }) : ImageEngine::epoch();
}

std::uint64_t NvthreadsEngine::durable_epoch() const noexcept
{
    return processes::is_program() ? session_process::there([this] { return ImageEngine::durable_epoch(); }) : ImageEngine::durable_epoch();
}

Result<void> NvthreadsEngine::recover_logs(std::uint64_t durable_epoch, RecoveryReport& report)
{
    const auto bytes = read_log_bytes();
    if (!bytes) {
        return pass_on(bytes.error());
    }
    auto read = read_logs(*pool_, durable_epoch, *bytes, nullptr);
    if (!read) {
        return pass_on(read.error());
    }
    report.rolled_back = "sections that were not durable";
    recovered_ = std::move(*read);
    return replay(*recovered_);
}

Result<void> NvthreadsEngine::start_checkpoints()
{
    constexpr std::uint64_t own_logs = 0;
    const auto newest = make_replayed_durable(*recovered_, own_logs);
    if (!newest) {
        return pass_on(newest.error());
    }
    if (auto done = logs_.start(*newest, group_to_go_on_from(*recovered_)); !done) {
        return done;
    }
    recovered_.reset();
    return rounds_->start();
}

bool NvthreadsEngine::end_checkpoints(bool clean) noexcept
{
    // Stores of the calling thread since its last section, or without one.
    logs_.hand_over(section_ends::Handover::outside);
    const bool finished = clean && rounds_->finish();
    listen_no_more();
    logs_.stop();
    rounds_->stop_replayers();
    return finished;
}

void NvthreadsEngine::request_checkpoint() noexcept { rounds_->request(); }

Result<void> NvthreadsEngine::checkpoint_now()
{
    if (processes::is_program()) {
        const int code = session_process::there([this] {
            const auto done = ImageEngine::checkpoint_now();
            return done ? static_cast<int>(SP_OK) : report(done.error());
        });
        return code == SP_OK ? Result<void>{} : fail(static_cast<sp_error>(code), 0, "{}", last_report());
    }
    logs_.hand_over(inside_fase() ? section_ends::Handover::inside : section_ends::Handover::outside);
    return ImageEngine::checkpoint_now();
}

Result<void> NvthreadsEngine::wait_durable(std::uint64_t epoch, std::uint64_t deadline_ns)
{
    if (processes::is_program()) {
        return processes::wait_durable_in_program(deadline_ns);
    }
    if (epoch > clock_.running()) {
        return ImageEngine::wait_durable(epoch, deadline_ns);
    }
    return logs_.wait_durable(deadline_ns);
}

void NvthreadsEngine::detach_parts_after_fork() noexcept
{
    listen_no_more();
    logs_.detach_after_fork();
    rounds_->detach_after_fork();
}

Result<std::uint64_t> NvthreadsEngine::grow(std::uint64_t wanted) { return grow_image(wanted, newest_format); }

Result<void> NvthreadsEngine::mirror(const MirroredRange&)
{
    return fail(
        SP_E_UNSUPPORTED, 0,
        "the program has SP_PERSISTENT variables, which the engine nvthreads does not keep: put them into a named object (sp_root), "
        "or use the default engine");
}

void NvthreadsEngine::thread_ends() noexcept
{
    if (!processes::is_program()) {  // There its process ends, too.
        logs_.thread_ends();
    }
}

bool NvthreadsEngine::handle_fault(void* /*address*/) noexcept { return false; }

void NvthreadsEngine::prepare_kernel_write(void* address, std::size_t size) noexcept
{
    if (processes::is_program()) {
        processes::open_pages_in_program(address, size);
    }
}

void NvthreadsEngine::note_kernel_write(void* address, std::size_t size) noexcept
{
    if (!processes::is_program()) {
        logs_.add(address, size);
    }
}

std::string_view NvthreadsEngine::tracker_name() const noexcept { return tracker_name_; }

}  // namespace stillpoint::nvthreads
