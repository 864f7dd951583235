#include "engines/spht/spht_engine.hpp"

#include "core/store_marks.hpp"
#include "engines/spht/lint_rules.hpp"
#include "engines/spht/offline_logs.hpp"
#include "engines/spht/own_options.hpp"
#include "engines/spht/own_statistics.hpp"
#include "engines/spht/own_transaction.hpp"
#include "engines/spht/spht_layout.hpp"
#include "logs/offline_logs.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/fase.hpp"
#include "runtime/session_state.hpp"
#include "runtime/statistics.hpp"
#include "stillpoint/spht.h"
#include "versions/offline.hpp"
#include "versions/room.hpp"
#include "versions/salvage.hpp"
#include "versions/trim.hpp"

namespace stillpoint::spht {

namespace {

std::unique_ptr<Engine> make() { return std::make_unique<SphtEngine>(); }

constexpr std::string_view tracker = "transactions";
constexpr std::string_view trackers[] = {tracker};
constexpr std::uint64_t interval_ms = 10'000;

std::optional<logs::LinkDirection> direction_of(std::string_view linking)
{
    if (linking == "none") {
        return std::nullopt;
    }
    return linking == "forward" ? logs::LinkDirection::forward : logs::LinkDirection::backward;
}

constexpr EngineFormat newest_format{"spht",
                                     layout_version,
                                     engine_area_pages,
                                     &LogPart::segment_file_pages,
                                     1,
                                     &logs::LogPart::pages_without_room,
                                     &logs::LogPart::first_segment_file_pages};
constexpr EngineFormat older_formats[] = {{"spht", layout_version_of_short_logs, engine_area_pages, &LogPart::segment_file_pages}};

Visibility visibility_of(std::string_view word)
{
    return word == "stored" ? Visibility::when_stored : word == "durable" ? Visibility::when_durable : Visibility::by_threads;
}

Result<const ProtocolRow*> protocol_for(const Medium& medium, const OwnOptions& options)
{
    const ProtocolRow& protocol = protocol_called(options.protocol);
    if (!protocol.is_spht() && !medium.byte_addressable()) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "protocol={} writes its logs by stores, and {} is a file: it needs byte-addressable media. Use medium=memory, or a "
                    "file system with DAX; protocol=spht works on every medium",
                    protocol.name, medium.path());
    }
    if (!protocol.is_spht() && options.linking != "none") {
        return fail(SP_E_INVALID_ARGUMENT, 0, "protocol={} has no links between its log records: use linking=none", protocol.name);
    }
    return &protocol;
}

/// The engine of this process, for what the heap and the directory store.
constinit std::atomic<SphtEngine*> running{nullptr};

}  // namespace

EngineDriver driver() noexcept
{
    return {.format = newest_format,
            .make = &make,
            .inspect = &logs::inspect_pool,
            .check = &check_pool,
            .table_format = layout::TableFormat::plain,
            .interval_ms = interval_ms,
            .interval_means = "replays of the logs, so that a restart has less to replay: a crash loses nothing that has returned",
            .trackers = trackers,
            .sums_program_bytes = true,
            .options = own_option_rows,
            .statistics = own_statistic_rows,
            .lint = lint_rules,
            .programs = Programs::transactions,
            .facts = &log_facts,
            .more_formats = older_formats,
            .salvage = &versions::salvage_pool,
            .trim = &versions::trim_pool};
}

TransactionalMemory* memory_of_session(const Session& session) noexcept
{
    return session.driver->make == &make ? &static_cast<SphtEngine&>(*session.engine).memory_ : nullptr;
}

SphtEngine::~SphtEngine()
{
    if (running.load(std::memory_order_relaxed) == this) {
        store_marks::want_nothing();
        memory_dies_hook.store(nullptr, std::memory_order_release);
        running.store(nullptr, std::memory_order_release);
    }
    loader_.stop();
    rounds_.reset();
}

void SphtEngine::note_store_of_library(const void* address, std::size_t size) noexcept
{
    if (SphtEngine* const engine = running.load(std::memory_order_acquire); engine != nullptr) {
        engine->memory_.log_store(address, size);
        engine->memory_.store_check().close_opened();
    }
}

void SphtEngine::log_group(std::span<const std::span<const std::byte>> ranges) noexcept
{
    if (SphtEngine* const engine = running.load(std::memory_order_acquire); engine != nullptr) {
        // A failure has been told: nothing becomes durable any more.
        static_cast<void>(engine->memory_.log_stores(ranges));
        engine->memory_.store_check().close_opened();
    }
}

/// Where a transaction allocates or frees a block, its own record says so.
void SphtEngine::note_block_state(const void* address, std::size_t size) noexcept
{
    const Transaction* const own = own_transaction.transaction;
    if (own == nullptr || !own->calls_heap()) {
        note_store_of_library(address, size);
    } else if (SphtEngine* const engine = running.load(std::memory_order_acquire); engine != nullptr) {
        engine->memory_.store_check().close_opened();
    }
}

/// Not for blocks that a transaction frees: it has locked their lines.
void SphtEngine::note_dying_memory(const void* begin, std::size_t size_bytes) noexcept
{
    if (SphtEngine* const engine = running.load(std::memory_order_acquire); engine != nullptr) {
        engine->memory_.outdate(begin, size_bytes);
    }
}

Result<RecoveryReport> SphtEngine::start(Pool pool, const Options& options)
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
    const auto request = [](void* self) noexcept { static_cast<SphtEngine*>(self)->request_checkpoint(); };
    const auto wake_applier = [](void* self) noexcept { static_cast<SphtEngine*>(self)->rounds_->wake(); };
    const auto finish_loading = [](void* self) noexcept { static_cast<SphtEngine*>(self)->finish_serving(); };
    const auto give_up = [](void* self, const Failure& failure) noexcept {
        auto& engine = *static_cast<SphtEngine*>(self);
        const StatisticsScope own(engine.statistics_number);
        give_up_durability(engine.clock_, failure);
    };
    const OwnOptions own{options};
    const auto executor = choose_executor(own.executor);
    if (!executor) {
        return pass_on(executor.error());
    }
    const auto protocol = protocol_for(pool_->medium(), own);
    if (!protocol) {
        return pass_on(protocol.error());
    }
    protocol_ = *protocol;
    if (own.verify_stores) {
        memory_.store_check().prepare();
    }
    if (!protocol_->is_spht() && *executor != Executor::software) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "protocol={} runs its transactions in software: use executor=software", protocol_->name);
    }
    in_place_.emplace(*pool_, table_, locations_, medium_lock_);
    if (auto done = memory_.prepare({pool_.get(), &medium_lock_, &shadow_, facts.image_bytes_max, direction_of(own.linking),
                                     own.markers != "always", visibility_of(own.visible), *executor, own.executor_seed, protocol_,
                                     &*in_place_, request, wake_applier, finish_loading, give_up, this});
        !done) {
        return pass_on(done.error());
    }
    if (auto done = prepare_replay(memory_, options, static_cast<unsigned>(own.replayers)); !done) {
        return pass_on(done.error());
    }
    if (auto done = load_image(options.recovery, report); !done) {
        return pass_on(done.error());
    }
    if (auto done = recover_logs(report.epoch, report); !done) {
        return pass_on(done.error());
    }
    publish_start();
    fase_count_no_locks();
    running.store(this, std::memory_order_release);
    store_marks::want_calls(&note_store_of_library, &note_block_state);
    store_marks::want_groups(&log_group);
    memory_dies_hook.store(&note_dying_memory, std::memory_order_release);
    return report;
}

/// Whole before the first transaction, unless the user asks otherwise: memory that is loaded page by page has small pages from then on.
/// Pages that are protected one by one make several ranges, and pages are placed into one only.
Result<void> SphtEngine::load_image(std::string_view choice, RecoveryReport& report)
{
    if (choice == "lazy" && memory_.verifies_stores()) {
        return fail(SP_E_UNSUPPORTED, 0, "verify_stores protects pages one by one, which cannot be loaded lazily then: use recovery=eager");
    }
    if (auto done = choose_loading(choice, false, report); !done) {
        return done;
    }
    if (auto done = load_pages(report.lazy); !done) {
        return done;
    }
    return report.lazy ? serve_first_touches() : Result<void>{};
}

Result<void> SphtEngine::recover_logs(std::uint64_t durable_epoch, RecoveryReport& report)
{
    const auto bytes = read_log_bytes();
    if (!bytes) {
        return pass_on(bytes.error());
    }
    auto logs = read_logs(*pool_, durable_epoch, *bytes, nullptr);
    if (!logs) {
        return pass_on(logs.error());
    }
    report.rolled_back = "transactions that had not returned";
    recovered_ = std::move(*logs);
    return replay(*recovered_);
}

Result<void> SphtEngine::start_checkpoints()
{
    const auto newest = make_replayed_durable(*recovered_, protocol_->pool_word);
    if (!newest) {
        return pass_on(newest.error());
    }
    if (auto done = memory_.start(*newest, group_to_go_on_from(*recovered_)); !done) {
        return done;
    }
    recovered_.reset();
    if (auto done = memory_.store_check().begin({shadow_.base(), shadow_.bytes()}); !done) {
        return done;
    }
    return rounds_->start();
}

bool SphtEngine::end_checkpoints(bool clean) noexcept
{
    const bool finished = clean && rounds_->finish();
    memory_.store_check().end();
    store_marks::want_nothing();
    memory_dies_hook.store(nullptr, std::memory_order_release);
    running.store(nullptr, std::memory_order_release);
    memory_.stop();
    rounds_->stop_replayers();
    return finished;
}

void SphtEngine::request_checkpoint() noexcept
{
    memory_.step_aside();
    rounds_->request();
}

void SphtEngine::detach_parts_after_fork() noexcept
{
    store_marks::want_nothing();
    memory_dies_hook.store(nullptr, std::memory_order_release);
    memory_.detach_after_fork();
    rounds_->detach_after_fork();
}

Result<std::uint64_t> SphtEngine::grow(std::uint64_t wanted)
{
    memory_.step_aside();
    return grow_image(wanted, newest_format);
}

Result<void> SphtEngine::enlarge_image(std::uint64_t bytes)
{
    const std::uint64_t before = shadow_.bytes();
    if (auto done = shadow_.make_accessible(bytes); !done) {
        return done;
    }
    if (auto done = memory_.store_check().add({shadow_.base() + before, bytes - before}); !done) {
        return done;
    }
    shadow_.publish(bytes);
    return {};
}

Result<void> SphtEngine::mirror(const MirroredRange& range)
{
    memory_.add_mirrored(range);
    return {};
}

void SphtEngine::thread_ends() noexcept { memory_.thread_ends(); }

bool SphtEngine::handle_fault(void* address) noexcept { return memory_.store_check().handle_fault(address); }

void SphtEngine::prepare_kernel_write(void* address, std::size_t size) noexcept
{
    memory_.store_check().prepare_kernel_write(address, size);
}

/// Outside the transaction of the thread, if it is in one: the kernel's stores stay if it aborts.
void SphtEngine::note_kernel_write(void* address, std::size_t size) noexcept { memory_.log_store(address, size); }

std::string_view SphtEngine::tracker_name() const noexcept { return tracker; }

Result<int> SphtEngine::run_as_one(int (*work)(), std::uint64_t& word, std::uint64_t value)
{
    struct Unit {
        int (*work)();
        std::uint64_t* word;
        std::uint64_t value;
        int result;
    } unit{work, &word, value, 0};
    const int code = sp_spht_run(
        [](sp_spht_transaction* transaction, void* argument) {
            Unit& own = *static_cast<Unit*>(argument);
            own.result = own.work();
            return own.result != 0 ? own.result : sp_spht_write_word(transaction, own.word, own.value, ~std::uint64_t{0});
        },
        &unit, 0);
    if (code == SP_OK || unit.result != 0) {
        return unit.result;
    }
    return fail(static_cast<sp_error>(code), 0, "{}", last_report());
}

}  // namespace stillpoint::spht
