#include "engines/breeze/open_pools.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <pthread.h>
#include <utility>

#include "media/open.hpp"
#include "os/environment.hpp"
#include "pool/superblock_layout.hpp"
#include "pool/uuid.hpp"
#include "runtime/environment_options.hpp"

namespace stillpoint::breeze {

constinit thread_local OwnTransaction own_transaction [[gnu::tls_model("initial-exec")]];

namespace {

constexpr std::size_t pools_max = 16;
constinit std::array<std::atomic<BreezePool*>, pools_max> pools{};

void detach_in_child()
{
    for (std::atomic<BreezePool*>& place : pools) {
        if (BreezePool* const pool = place.load(std::memory_order_acquire); pool != nullptr) {
            pool->detach_after_fork();
        }
    }
    own_transaction = {};
}

/// Pools that the program leaves open are closed when it ends [Breeze, thesis §3.1.3].
[[gnu::destructor]] void close_all_at_exit()
{
    for (std::atomic<BreezePool*>& place : pools) {
        BreezePool* const pool = place.load(std::memory_order_acquire);
        if (pool != nullptr && !pool->detached.load() && !pool->is_busy()) {
            static_cast<void>(close_pool(*pool));
        }
    }
}

Result<BreezePool*> keep(std::unique_ptr<BreezePool> pool)
{
    static const int at_fork = pthread_atfork(nullptr, nullptr, &detach_in_child);
    static_cast<void>(at_fork);
    for (std::atomic<BreezePool*>& place : pools) {
        BreezePool* nobody = nullptr;
        if (place.compare_exchange_strong(nobody, pool.get())) {
            return pool.release();
        }
    }
    return fail(SP_E_NO_MEMORY, 0, "{}: {} pools are open already: close one", pool->path(), pools_max);
}

/// The options of pools in Ceph. Errors: invalid_argument.
Result<void> read_environment(MediumOptions& options)
{
    const auto take_over = option_of_environment("take_over");
    const auto lease_ms = option_of_environment("lease_ms");
    const auto cluster_wait_max_ms = option_of_environment("cluster_wait_max_ms");
    for (const auto* const read : {&take_over, &lease_ms, &cluster_wait_max_ms}) {
        if (!*read) {
            return pass_on(read->error());
        }
    }
    options.take_over = std::get<bool>(*take_over);
    options.lease_ms = static_cast<std::uint32_t>(std::get<std::uint64_t>(*lease_ms));
    options.cluster_wait_max_ms = static_cast<std::uint32_t>(std::get<std::uint64_t>(*cluster_wait_max_ms));
    return {};
}

Result<MediumOptions> medium_options(const std::string& path, const nvm_options* options)
{
    MediumOptions made;
    made.path = path;
    if (lies_in_no_file(path)) {
        if (auto read = read_environment(made); !read) {
            return pass_on(read.error());
        }
    }
    const char* medium = options != nullptr && options->medium != nullptr ? options->medium : os::environment_variable("STILLPOINT_MEDIUM");
    const std::string_view wanted = medium != nullptr ? medium : "auto";
    if (wanted == "memory") {
        made.kind = MediumKind::memory;
    } else if (wanted == "dax") {
        made.kind = MediumKind::dax;
    } else if (wanted == "file") {
        made.kind = MediumKind::file;
    } else if (wanted != "auto") {
        return fail(SP_E_INVALID_ARGUMENT, 0, "there is no medium \"{}\": use dax, file, memory or auto", wanted);
    }
    const bool ends_with_the_machine = wanted != "memory" && lies_in_memory(path);
    const char* const durability = options != nullptr ? options->durability : nullptr;
    if (durability != nullptr && std::strcmp(durability, "process") != 0 && std::strcmp(durability, "power") != 0) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "there is no durability \"{}\": use power or process", durability);
    }
    const bool process_alone = durability != nullptr ? std::strcmp(durability, "process") == 0 : ends_with_the_machine;
    if (!process_alone && ends_with_the_machine) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "{} would lie in memory (tmpfs), which ends with the machine: durability power cannot be kept there", path);
    }
    made.durability = process_alone ? Durability::process : Durability::power;
    return made;
}

/// Option `damaged` is of sessions. Without one it can only mean this pool, and an opening for writing is not what it asks for.
/// Errors: unsupported.
Result<void> check_damaged_option(const std::string& path)
{
    const char* const damaged = os::environment_variable("STILLPOINT_DAMAGED");
    if (damaged == nullptr || std::strcmp(damaged, "refuse") == 0 || os::environment_variable("STILLPOINT_POOL") != nullptr) {
        return {};
    }
    return fail(
        SP_E_UNSUPPORTED, 0,
        "{}: nvm_pool_open cannot open it with STILLPOINT_DAMAGED={}: pools of objects have no older epochs, and their opening writes "
        "to them; `stillpoint dump {}` shows what is there, `stillpoint salvage {} NEW` makes a pool of all that is sound",
        path, damaged, path, path);
}

OpenOptions open_options(const nvm_options* options)
{
    OpenOptions made;
    const char* const checked = os::environment_variable("STILLPOINT_BREEZE_CHECKED");
    made.is_checked = checked != nullptr && std::strcmp(checked, "1") == 0;
    if (options != nullptr) {
        made.base_address = options->base_address;
        made.threads = options->threads;
        made.collect = options->collect != 0;
        made.stays = options->stays != 0;
    }
    return made;
}

/// In the upper half of the window, so that pools that were made by different processes can mostly lie where they lay.
Result<std::uintptr_t> first_place(std::uint64_t image_bytes)
{
    const auto uuid = draw_uuid();
    if (!uuid) {
        return pass_on(uuid.error());
    }
    std::uint64_t random = 0;
    std::memcpy(&random, uuid->data(), sizeof random);
    const std::uint64_t half = window_bytes / 2;
    if (image_bytes >= half) {
        return window_base;
    }
    return window_base + half + random % ((half - image_bytes) / layout::base_address_alignment) * layout::base_address_alignment;
}

/// A pool of that size. Errors: invalid_argument, io.
Result<Pool::CreateOptions> creation_of(const std::string& path, std::uint64_t size_bytes, const nvm_options* options)
{
    if (size_bytes > window_bytes / 2) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: a pool has at most {} GiB", path, window_bytes / 2 / gib);
    }
    const std::uint64_t image_bytes = std::max<std::uint64_t>(round_up(size_bytes, zone_bytes), Pool::image_bytes_min);
    Pool::CreateOptions create{pool_format(), image_bytes, image_bytes};
    create.write_image = &BreezePool::format;
    const auto place = options != nullptr && options->base_address != 0 ? Result<std::uintptr_t>(options->base_address)
                                                                        : first_place(image_bytes);
    if (!place) {
        return pass_on(place.error());
    }
    create.base_address = *place;
    return create;
}

/// An image's header that a creation has written before it was cut off: a pool of another medium has its image elsewhere. Errors: io.
Result<void> clear_headers(Medium& medium)
{
    alignas(page_bytes) static constexpr std::array<std::byte, page_bytes> zeroes{};
    for (const bool is_journaled : {false, true}) {
        const EngineFormat& format = pool_format(is_journaled);
        const std::uint64_t place = format.first_segment_page(layout::superblock_copies + format.area_pages) * page_bytes;
        const BlockWrite write{place, zeroes.data(), zeroes.size()};
        if (place + page_bytes <= medium.size_bytes()) {
            if (auto written = medium.write({&write, 1}); !written) {
                return written;
            }
        }
    }
    return {};
}

/// A pool in a file that holds nothing, opened. Errors: those of nvm_pool_create.
Result<BreezePool*> make_pool(std::unique_ptr<Medium> medium, Pool::CreateOptions create, const nvm_options* options)
{
    create.format = pool_format(!medium->byte_addressable());
    const auto file_bytes = Pool::file_bytes_for(create);
    if (!file_bytes) {
        return pass_on(file_bytes.error());
    }
    if (medium->size_bytes() < *file_bytes) {
        if (auto resized = medium->resize(*file_bytes); !resized) {
            return pass_on(resized.error());
        }
    }
    auto pool = Pool::create(std::move(medium), create);
    if (!pool) {
        return pass_on(pool.error());
    }
    if (auto published = pool->medium().publish(); !published) {
        return pass_on(published.error());
    }
    auto opened = BreezePool::open(std::move(*pool), open_options(options));
    return opened ? keep(std::move(*opened)) : Result<BreezePool*>(pass_on(opened.error()));
}

}  // namespace

BreezePool* pool_at(const void* address) noexcept
{
    if (!stillpoint_is_persistent(address)) {
        return nullptr;
    }
    for (const std::atomic<BreezePool*>& place : pools) {
        BreezePool* const pool = place.load(std::memory_order_acquire);
        if (pool != nullptr && pool->parts().memory.contains(reinterpret_cast<std::uintptr_t>(address))) {
            return pool;
        }
    }
    return nullptr;
}

Result<BreezePool*> open_pool(const NVM_POOL* pool) noexcept
{
    for (const std::atomic<BreezePool*>& place : pools) {
        BreezePool* const found = place.load(std::memory_order_acquire);
        if (found != nullptr && static_cast<const void*>(found) == static_cast<const void*>(pool)) {
            if (found->detached.load(std::memory_order_relaxed)) {
                return fail(SP_E_DETACHED, 0, "{}: a child made by fork has no pool", found->path());
            }
            return found;
        }
    }
    return fail(SP_E_NOT_OPEN, 0, "{} is not an open pool: open one with nvm_pool_open", static_cast<const void*>(pool));
}

Result<BreezePool*> create_pool(const std::string& path, std::uint64_t size_bytes, const nvm_options* options)
{
    auto medium_wanted = medium_options(path, options);
    if (!medium_wanted) {
        return pass_on(medium_wanted.error());
    }
    auto create = creation_of(path, size_bytes, options);
    if (!create) {
        return pass_on(create.error());
    }
    const auto file_bytes = Pool::file_bytes_for(*create);
    if (!file_bytes) {
        return pass_on(file_bytes.error());
    }
    medium_wanted->publish_later = true;
    auto medium = create_medium(*medium_wanted, *file_bytes);
    return medium ? make_pool(std::move(*medium), *create, options) : Result<BreezePool*>(pass_on(medium.error()));
}

Result<BreezePool*> obtain_pool(const std::string& path, std::uint64_t size_bytes)
{
    auto opened = open_pool_file(path, nullptr);
    if (!opened && opened.error().code == SP_E_POOL_MISSING) {
        return create_pool(path, size_bytes, nullptr);
    }
    if (opened || opened.error().code != SP_E_NOT_A_POOL) {
        return opened;
    }
    // Perhaps a file system without unnamed files, where a crash has left the name of a pool that was being made.
    const auto medium_wanted = medium_options(path, nullptr);
    const auto create = creation_of(path, size_bytes, nullptr);
    if (!medium_wanted || !create) {
        return pass_on(medium_wanted ? create.error() : medium_wanted.error());
    }
    for (int attempt = 0; attempt < 2; ++attempt) {
        auto medium = open_medium(*medium_wanted);  // Locked: no other process makes it meanwhile.
        const auto unfinished = medium ? Pool::is_unfinished(**medium) : Result<bool>(false);
        if (!medium || !unfinished) {
            return pass_on(medium ? unfinished.error() : medium.error());
        }
        if (!*unfinished) {
            break;
        }
        if ((*medium)->size_bytes() != 0) {
            if (auto cleared = clear_headers(**medium); !cleared) {
                return pass_on(cleared.error());
            }
            return make_pool(std::move(*medium), *create, nullptr);
        }
        // The best medium is known for a file that has bytes.
        const auto file_bytes = Pool::file_bytes_for(*create);
        if (auto resized = file_bytes ? (*medium)->resize(*file_bytes) : pass_on(file_bytes.error()); !resized) {
            return pass_on(resized.error());
        }
    }
    return opened;
}

Result<BreezePool*> open_pool_file(const std::string& path, const nvm_options* options)
{
    if (auto allowed = check_damaged_option(path); !allowed) {
        return pass_on(allowed.error());
    }
    const auto medium_wanted = medium_options(path, options);
    if (!medium_wanted) {
        return pass_on(medium_wanted.error());
    }
    auto medium = open_medium(*medium_wanted);
    if (!medium) {
        return pass_on(medium.error());
    }
    auto pool = Pool::open(std::move(*medium), EngineFormat{}, false, true);
    if (!pool) {
        return pass_on(pool.error());
    }
    if (auto fits = pool->check_engine(pool_format(pool->facts().engine_layout_version != layout_version)); !fits) {
        return pass_on(fits.error());
    }
    auto opened = BreezePool::open(std::move(*pool), open_options(options));
    if (!opened && opened.error().code == SP_E_POOL_CORRUPT) {
        return fail(SP_E_POOL_CORRUPT, opened.error().os_error,
                    "{}; `stillpoint check {}` lists all damage, `stillpoint salvage {} NEW` makes a pool of what is proved",
                    opened.error().text(), path, path);
    }
    return opened ? keep(std::move(*opened)) : Result<BreezePool*>(pass_on(opened.error()));
}

Result<void> close_pool(BreezePool& pool)
{
    if (pool.is_busy()) {
        return fail(SP_E_INSIDE_FASE, 0, "{}: a transaction is running: end it before the pool is closed", pool.path());
    }
    for (std::atomic<BreezePool*>& place : pools) {
        BreezePool* expected = &pool;
        if (place.compare_exchange_strong(expected, nullptr)) {
            const std::unique_ptr<BreezePool> owned(&pool);
            return owned->close();
        }
    }
    return {};
}

}  // namespace stillpoint::breeze
