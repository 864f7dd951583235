#include "api/session_pool.hpp"

#include <algorithm>
#include <cstring>

#include "api/damaged_pool.hpp"
#include "api/options.hpp"
#include "api/registry.hpp"
#include "heap/heap_layout.hpp"
#include "media/open.hpp"
#include "media/private_medium.hpp"
#include "os/log.hpp"
#include "os/same_file.hpp"
#include "pool/image.hpp"
#include "pool/replicated_pool.hpp"
#include "pool/superblock_layout.hpp"
#include "pool/uuid.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint {

namespace {

std::optional<MediumKind> medium_choice(std::string_view choice)
{
    if (choice == "file") {
        return MediumKind::file;
    }
    if (choice == "dax") {
        return MediumKind::dax;
    }
    if (choice == "memory") {
        return MediumKind::memory;
    }
    return std::nullopt;
}

/// Memory ends with the machine. Naming the medium memory asks for an emulation, and gives the level that is emulated.
bool can_only_survive_the_process(const Options& options) { return options.medium != "memory" && lies_in_memory(options.pool); }

/// The given level; else power where the medium can keep it.
Durability durability_of_new_pool(const Options& options)
{
    const bool process = options.durability == "process" || (!is_given(options, "durability") && can_only_survive_the_process(options));
    return process ? Durability::process : Durability::power;
}

/// A promise that the medium cannot keep is refused. Errors: unsupported.
Result<void> check_promise(const Options& options, Durability durability, bool is_new)
{
    if (durability == Durability::process || !can_only_survive_the_process(options)) {
        return {};
    }
    return fail(
        SP_E_UNSUPPORTED, 0,
        "{} {} in memory (tmpfs), which ends with the machine: durability power cannot be kept there. Put the pool on a disk, {} or "
        "name the emulation of such a medium, --medium memory (option medium=memory)",
        options.pool, is_new ? "would lie" : "lies", is_new ? "say --durability process (option durability=process)," : "");
}

MediumOptions medium_options(const Options& options)
{
    MediumOptions result;
    result.path = options.pool;
    result.durability = durability_of_new_pool(options);
    result.kind = medium_choice(options.medium);
    result.line_latency_ns = static_cast<std::uint32_t>(options.line_latency_ns);
    result.page_latency_ns = static_cast<std::uint32_t>(options.page_latency_ns);
    result.bandwidth_mb_per_s = static_cast<std::uint32_t>(options.bandwidth_mb_per_s);
    result.take_over = options.take_over;
    result.lease_ms = static_cast<std::uint32_t>(options.lease_ms);
    result.cluster_wait_max_ms = static_cast<std::uint32_t>(options.cluster_wait_max_ms);
    return result;
}

std::uint64_t newest_epoch_of(void* session_number) noexcept
{
    return statistics_of(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(session_number)))
        .durable_epoch.load(std::memory_order_acquire);
}

void show_replica(void* session_number, const ReplicaFigures& figures) noexcept
{
    Statistics& page = statistics_of(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(session_number)));
    const std::uint64_t here = page.durable_epoch.load(std::memory_order_acquire);
    page.replica_epoch.store(figures.newest_epoch, std::memory_order_relaxed);
    page.replica_lag_ns.store(figures.lag_ns, std::memory_order_relaxed);
    page.replica_lag_epochs.store(here > figures.newest_epoch ? here - figures.newest_epoch : 0, std::memory_order_relaxed);
    page.replica_waiting_bytes.store(figures.bytes_waiting, std::memory_order_relaxed);
}

ReplicaOptions replica_options(const Options& options, unsigned session_number)
{
    ReplicaOptions replica;
    replica.name = options.replica;
    replica.level = options.replicate == "async" ? ReplicaLevel::local : ReplicaLevel::remote;
    replica.lag_ms_max = static_cast<std::uint32_t>(options.replicate_lag_ms);
    replica.buffer_bytes = options.replicate_buffer_mb * mib;
    replica.newest_epoch = &newest_epoch_of;
    replica.tell = &show_replica;
    replica.context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(session_number));
    return replica;
}

/// The medium of an existing pool, with its replica if it has one.
Result<std::unique_ptr<Medium>> open_pool_medium(const Options& options, unsigned session_number, ReplicatedMedium*& replicated)
{
    if (options.replica.empty()) {
        return open_medium(medium_options(options));
    }
    auto both = open_replicated(medium_options(options), replica_options(options, session_number));
    if (!both) {
        return pass_on(both.error());
    }
    replicated = both->get();
    return std::unique_ptr<Medium>(std::move(*both));
}

Result<std::unique_ptr<Medium>> create_pool_medium(const MediumOptions& unnamed, const Options& options, unsigned session_number,
                                                   std::uint64_t size_bytes, ReplicatedMedium*& replicated)
{
    if (options.replica.empty()) {
        return create_medium(unnamed, size_bytes);
    }
    auto both = create_replicated(unnamed, replica_options(options, session_number), size_bytes);
    if (!both) {
        return pass_on(both.error());
    }
    replicated = both->get();
    return std::unique_ptr<Medium>(std::move(*both));
}

/// "engine NAME": what `run` and sp_open may say of a new pool, and this one has settled.
template <class Value>
tl::unexpected<Failure> contradicts(sp_error code, const Options& options, std::string_view option, const Value& given,
                                    const Value& of_pool, std::string_view unit, std::string_view way_out)
{
    return fail(code, 0, "{}: the pool has {} {}{}, not {}: that was settled when it was created; leave the option {} out, or {}",
                options.pool, option, of_pool, unit, given, option, way_out);
}

/// Room for the tables of the heap, and for the first objects of a small program.
std::uint64_t tables_and_first_spans(std::uint64_t heap_offset, std::uint64_t maximum, const EngineDriver& driver)
{
    constexpr std::uint64_t first_spans = 8;
    const auto heap = heap::HeapLayout::of(heap_offset, maximum, driver.table_format);
    return round_up(heap.spans_offset + first_spans * heap::span_bytes, mib);
}

/// The given size; else what the engine begins with, made to fit a maximum that was given alone, and its tables. Errors: invalid_argument.
Result<std::uint64_t> size_of_new_pool(const Options& options, const EngineDriver& driver)
{
    const std::uint64_t maximum = options.pool_max_mb * mib;
    const std::uint64_t heap_offset = ImageGeometry::for_image(maximum, driver.table_format).heap_offset;
    const std::uint64_t least = std::max(round_up(heap_offset + page_bytes, mib), Pool::image_bytes_min);
    if (least > maximum) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "option pool_max_mb: {} is too small for the engine {}, whose tables alone take {} MiB; use {}", options.pool_max_mb,
                    driver.format.name, least / mib, least / mib + 1);
    }
    if (options.pool_size_mb == 0) {
        return std::min(std::max(Pool::image_bytes_min, tables_and_first_spans(heap_offset, maximum, driver)), maximum);
    }
    if (options.pool_size_mb * mib < least) {
        return fail(
            SP_E_INVALID_ARGUMENT, 0,
            "option pool_size_mb: {} is too small: the tables of the engine {}, in a pool that may grow to {} MiB, need {}; use {}, or "
            "leave the option out",
            options.pool_size_mb, driver.format.name, options.pool_max_mb, least / mib, least / mib);
    }
    return options.pool_size_mb * mib;
}

tl::unexpected<Failure> no_such_engine(std::string_view name)
{
    return fail(SP_E_INVALID_ARGUMENT, 0, "there is no engine called \"{}\"", name);
}

tl::unexpected<Failure> opened_by_the_program(const Options& options, const EngineDriver& driver)
{
    if (options.damaged != "refuse") {
        return fail(SP_E_POOL_ENGINE, 0,
                    "{}: pools of the engine {} are made and opened by the program itself, with {}, which knows no damaged={}: `stillpoint "
                    "dump {}` shows what is there, `stillpoint salvage {} NEW` makes a pool of all that is sound",
                    options.pool, driver.format.name, driver.opened_by, options.damaged, options.pool, options.pool);
    }
    return fail(SP_E_POOL_ENGINE, 0,
                "{}: pools of the engine {} are made and opened by the program itself, with {}: sp_open and "
                "`stillpoint run` cannot",
                options.pool, driver.format.name, driver.opened_by);
}

struct NewPool {
    const EngineDriver* driver;
    std::uint64_t size_bytes;
};

/// The request in the options. Errors: invalid_argument.
Result<NewPool> new_pool_of(const Options& options)
{
    const EngineDriver* const driver = find_engine(options.engine);
    if (driver == nullptr) {
        return no_such_engine(options.engine);
    }
    if (!driver->opened_by.empty()) {
        return opened_by_the_program(options, *driver);
    }
    const auto size = size_of_new_pool(options, *driver);
    if (!size) {
        return pass_on(size.error());
    }
    return NewPool{driver, *size};
}

/// Whether [begin, + size) meets the image of an open session, present or to come.
const Session* session_at(std::uintptr_t begin, std::uint64_t size_bytes)
{
    const Session* found = nullptr;
    for_each_session([&](const Session& session) {
        if (begin < session.image_end && begin + size_bytes > session.image_begin) {
            found = &session;
        }
    });
    return found;
}

/// Somewhere in the upper half of the window, so that pools that were made by different processes can mostly be open beside each other.
/// Errors: window_taken.
Result<std::uintptr_t> free_place(const Options& options)
{
    constexpr unsigned attempts = 64;
    const std::uint64_t size_bytes = options.pool_max_mb * mib;
    const std::uint64_t step = round_up(size_bytes, layout::base_address_alignment);
    const std::uint64_t places = size_bytes > window_bytes / 2 ? 0 : (window_bytes / 2 - size_bytes) / layout::base_address_alignment + 1;
    for (unsigned attempt = 0; attempt < attempts && places != 0; ++attempt) {
        const auto uuid = draw_uuid();
        if (!uuid) {
            return pass_on(uuid.error());
        }
        std::uint64_t random = 0;
        std::memcpy(&random, uuid->data() + 8, sizeof random);
        const std::uintptr_t place = window_base + window_bytes / 2 + random % places * layout::base_address_alignment;
        if (session_at(place, step) == nullptr) {
            return place;
        }
    }
    return fail(SP_E_WINDOW_TAKEN, 0,
                "{}: no room for {} MiB of addresses beside the pools that are open; make it with a smaller maximum (option pool_max_mb)",
                options.pool, options.pool_max_mb);
}

Result<SessionPool> create_pool(const Options& options, PoolPlace where, unsigned session_number)
{
    const auto wanted = new_pool_of(options);
    if (!wanted) {
        return pass_on(wanted.error());
    }
    Pool::CreateOptions create{wanted->driver->format, wanted->size_bytes, options.pool_max_mb * mib};
    if (where == PoolPlace::free || session_at(create.base_address, create.image_bytes_max) != nullptr) {
        const auto place = free_place(options);
        if (!place) {
            return pass_on(place.error());
        }
        create.base_address = *place;
    }
    auto file_bytes = Pool::file_bytes_for(create);
    if (!file_bytes) {
        return pass_on(file_bytes.error());
    }
    MediumOptions unnamed = medium_options(options);
    if (auto kept = check_promise(options, unnamed.durability, true); !kept) {
        return pass_on(kept.error());
    }
    if (!is_given(options, "durability") && unnamed.durability == Durability::process) {
        os::log(os::Severity::note, "{} lies in memory (tmpfs), which ends with the machine: its durability is process", options.pool);
    }
    unnamed.publish_later = true;
    unnamed.without_room = Pool::bytes_without_room(create, Room::on_disk);
    unnamed.without_room_in_memory = Pool::bytes_without_room(create, Room::in_memory);
    ReplicatedMedium* replicated = nullptr;
    auto medium = create_pool_medium(unnamed, options, session_number, *file_bytes, replicated);
    if (!medium) {
        return pass_on(medium.error());
    }
    // The pool gets its name when the engine runs: a start that is refused or killed leaves no file.
    auto pool = Pool::create(std::move(*medium), create);
    if (!pool) {
        return pass_on(pool.error());
    }
    return SessionPool{std::move(*pool), wanted->driver, nullptr, replicated};
}

}  // namespace

Result<void> check_creation_options(const Options& options, const PoolFacts& facts)
{
    const auto given = [&](std::string_view name) { return is_given(options, name); };
    if (given("engine") && options.engine != facts.engine_name) {
        return contradicts(SP_E_POOL_ENGINE, options, "engine", options.engine, std::string_view(facts.engine_name), "",
                           "name another pool: an engine has its own way to keep data, which the program itself must copy");
    }
    const std::string_view durability = facts.durability == Durability::power ? "power" : "process";
    if (given("durability") && options.durability != durability) {
        return contradicts(SP_E_INVALID_ARGUMENT, options, "durability", options.durability, durability, "",
                           "make a pool of that durability, and let the program copy its data there");
    }
    if (given("pool_max_mb") && options.pool_max_mb * mib != facts.image_bytes_max) {
        return contradicts(SP_E_INVALID_ARGUMENT, options, "pool_max_mb", options.pool_max_mb, facts.image_bytes_max / mib, " MiB",
                           options.pool_max_mb * mib > facts.image_bytes_max ? "raise it: `stillpoint grow`"
                                                                             : "make a smaller pool: a maximum is only ever raised");
    }
    return {};
}

namespace {

/// A pool grows by itself, so the size that an option gives for an existing pool is only a hint.
void tell_of_idle_size(const Options& options, const PoolFacts& facts)
{
    if (is_given(options, "pool_size_mb") && options.pool_size_mb * mib > facts.image_bytes) {
        os::log(
            os::Severity::warning,
            "{}: the pool has {} MiB, and pool_size_mb ({}), the size that a new pool begins with, is ignored: this one grows by itself up "
            "to {} MiB",
            options.pool, facts.image_bytes / mib, options.pool_size_mb, facts.image_bytes_max / mib);
    }
}

/// The pool as it is opened, with its engine, if the options agree with it.
Result<SessionPool> open_pool(std::unique_ptr<Medium> medium, const Options& options)
{
    // Recorded when the engine runs: until then the pool may be refused, and stays as it is.
    auto pool = Pool::open(std::move(medium), EngineFormat{}, false, true);
    if (!pool) {
        return pass_on(pool.error());
    }
    const PoolFacts& facts = pool->facts();
    if (const EngineDriver* const owner = find_engine(facts.engine_name); owner != nullptr && !owner->opened_by.empty()) {
        return opened_by_the_program(options, *owner);
    }
    if (auto agrees = check_creation_options(options, facts); !agrees) {
        return pass_on(agrees.error());
    }
    if (auto kept = check_promise(options, facts.durability, false); !kept) {
        return pass_on(kept.error());
    }
    if (const Session* const other = session_at(facts.base_address, facts.image_bytes_max); other != nullptr) {
        return fail(
            SP_E_WINDOW_TAKEN, 0,
            "{}: its addresses, {:#x} and up, are those of the open pool {}: these two cannot be open at once. Pools that sp_pool_open "
            "makes get addresses of their own",
            options.pool, facts.base_address, other->pool);
    }
    const EngineDriver* const driver = find_engine(facts.engine_name);
    if (driver == nullptr) {
        return fail(SP_E_POOL_ENGINE, 0, "{}: the pool belongs to engine {}, which this Stillpoint does not have; use a newer one",
                    options.pool, facts.engine_name);
    }
    const EngineFormat* const format = format_of(*driver, pool->facts().engine_layout_version);
    if (auto fits = pool->check_engine(format != nullptr ? *format : driver->format); !fits) {
        return pass_on(fits.error());
    }
    return SessionPool{std::move(*pool), driver};
}

}  // namespace

namespace {

/// Option damaged=read-only: what is written stays in memory, from the salvage on. Errors: also pool_missing.
Result<SessionPool> open_to_look(const Options& options)
{
    auto file = open_medium_read_only(medium_options(options), true);
    if (!file) {
        return pass_on(file.error());
    }
    auto medium = PrivateMedium::over(std::move(*file));
    if (!medium) {
        return pass_on(medium.error());
    }
    PrivateMedium* const copy = medium->get();
    auto opened = open_pool(std::move(*medium), options);
    if (!opened) {
        return opened;
    }
    opened->private_medium = copy;
    if (auto sound = keep_what_is_sound(opened->pool, *opened->driver); !sound) {
        return pass_on(sound.error());
    }
    return opened;
}

Result<SessionPool> find_or_create_pool(const Options& options, PoolPlace where, unsigned session_number)
{
    if (options.damaged == "read-only") {
        return open_to_look(options);
    }
    ReplicatedMedium* replicated = nullptr;
    auto medium = open_pool_medium(options, session_number, replicated);
    if (!medium && medium.error().code == SP_E_POOL_MISSING) {
        return create_pool(options, where, session_number);
    }
    if (!medium) {
        return pass_on(medium.error());
    }
    auto opened = open_pool(std::move(*medium), options);
    if (!opened) {
        return opened;
    }
    opened->replicated_medium = replicated;
    tell_of_idle_size(options, opened->pool.facts());
    if (options.damaged == "older-epoch") {
        if (auto sound = go_back_if_damaged(opened->pool, *opened->driver); !sound) {
            return pass_on(sound.error());
        }
    }
    return opened;
}

/// Some engines rely on quiescent states that no other pool may disturb. Errors: already_open.
Result<void> check_company(const Options& options, const EngineDriver& driver)
{
    Result<void> result;
    for_each_session([&](const Session& other) {
        if (result && !(driver.shares_process && other.driver->shares_process)) {
            const EngineDriver& alone = driver.shares_process ? *other.driver : driver;
            result = fail(SP_E_ALREADY_OPEN, 0,
                          "{}: this process has the pool {} (engine {}) open already, and the engine {} needs the process for itself; only "
                          "pools of engines that are durable on return can be open beside each other",
                          options.pool, other.pool, other.driver->format.name, alone.format.name);
        }
    });
    return result;
}

/// Whether an open session has that file, under whatever path.
bool has_open(const std::string& path) noexcept
{
    bool found = false;
    for_each_session([&](const Session& session) { found = found || session.pool == path || os::is_same_file(session.pool, path); });
    return found;
}

}  // namespace

Result<SessionPool> open_or_create_pool(const Options& options, PoolPlace where, unsigned session_number)
{
    auto opened = find_or_create_pool(options, where, session_number);
    if (!opened && opened.error().code == SP_E_POOL_LOCKED && has_open(options.pool)) {
        return fail(SP_E_ALREADY_OPEN, 0, "{}: this process has this pool open already", options.pool);
    }
    if (!opened) {
        return opened;
    }
    if (auto fits = check_company(options, *opened->driver); !fits) {
        return pass_on(fits.error());
    }
    return opened;
}

Result<void> validate_pool(const Options& options)
{
    if (auto checked = check_options(options); !checked) {
        return checked;
    }
    const bool looks_only = options.damaged == "read-only";
    ReplicatedMedium* replicated = nullptr;
    auto medium = looks_only ? open_medium_read_only(medium_options(options), true) : open_pool_medium(options, 0, replicated);
    if (!medium && medium.error().code == SP_E_POOL_MISSING && !looks_only) {
        if (auto wanted = new_pool_of(options); !wanted) {
            return pass_on(wanted.error());
        }
        const MediumOptions medium_of_new = medium_options(options);
        auto kept = check_promise(options, medium_of_new.durability, true);
        return kept ? check_creation(medium_of_new) : kept;
    }
    if (!medium) {
        return pass_on(medium.error());
    }
    auto pool = open_pool(std::move(*medium), options);
    return pool ? Result<void>{} : Result<void>{pass_on(pool.error())};
}

std::string engine_of_next_opening(const Options& options)
{
    if (!is_given(options, "engine")) {
        if (auto medium = open_medium_read_only(medium_options(options), false); medium) {
            if (const auto pool = Pool::open(std::move(*medium), EngineFormat{}, true); pool) {
                return pool->facts().engine_name;
            }
        }
    }
    return std::string(options.engine);
}

}  // namespace stillpoint
