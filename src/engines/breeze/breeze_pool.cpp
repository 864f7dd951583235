#include "engines/breeze/breeze_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <sched.h>
#include <utility>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "core/pool_part.hpp"
#include "engines/breeze/own_statistics.hpp"
#include "engines/breeze/pointer_rewrite.hpp"
#include "engines/breeze/scan.hpp"
#include "os/clock.hpp"
#include "os/log.hpp"
#include "pool/commit_record.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t header_seed = 0x4252454548454144;
constexpr std::uint64_t key_seed = 0x425245454b455953;
constexpr EngineFormat format_of_pools{"breeze", layout_version, 1, &segment_file_pages, segment_alignment_bytes / page_bytes};

constexpr EngineFormat journaled_format{"breeze", journaled_layout_version, commit_area_pages, &journaled_segment_file_pages};

std::uint64_t checksum_of(PoolHeader header) noexcept
{
    header.checksum = 0;
    return checksum64(&header, offsetof(PoolHeader, reserved), header_seed);
}

unsigned threads_for(const OpenOptions& options) noexcept
{
    if (options.threads != 0) {
        return std::min<unsigned>(options.threads, rewriters_max);
    }
    cpu_set_t cpus;
    const int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    return std::clamp<unsigned>(static_cast<unsigned>(count), 1, rewriters_max);
}

constexpr unsigned no_log = logs_max;
constinit thread_local unsigned own_log = no_log;  ///< that the thread had last: its cache has free blocks
constinit std::atomic<unsigned> threads_seen{0};   ///< each begins with another log

}  // namespace

bool is_journaled(const Pool& pool) noexcept { return pool.facts().engine_layout_version == journaled_layout_version; }

const EngineFormat& pool_format(bool is_journaled) noexcept { return is_journaled ? journaled_format : format_of_pools; }

PoolHeader BreezePool::new_header(const Pool& pool) noexcept
{
    const PoolFacts& facts = pool.facts();
    PoolHeader header{};
    std::memcpy(header.magic, header_magic, sizeof header_magic);
    header.header_bytes = sizeof(PoolHeader);
    header.log_count = logs_max;
    std::memcpy(header.uuid, facts.uuid.data(), sizeof header.uuid);
    header.image_bytes = facts.image_bytes;
    header.key = checksum64(facts.uuid.data(), facts.uuid.size(), key_seed);
    header.generation = 1;
    header.oldest_generation = 1;
    header.bases[1] = facts.base_address;
    header.clean = 1;
    header.versions_reserved = 1;
    header.checksum = checksum_of(header);
    return header;
}

Result<void> BreezePool::format(Pool& pool)
{
    struct alignas(page_bytes) AlignedHeader : PoolHeader {};
    const auto header = std::make_unique<AlignedHeader>();
    static_cast<PoolHeader&>(*header) = new_header(pool);
    Medium& medium = pool.medium();
    const std::uint64_t place = pool.segments().front().first_file_page * page_bytes;
    const BlockWrite write{place, reinterpret_cast<const std::byte*>(header.get()), sizeof(PoolHeader)};
    return medium.write({&write, 1});
}

BreezePool::~BreezePool()
{
    parts_.counts.stop();
    parts_.memory.unmap();
}

Result<void> BreezePool::check_header(const PoolHeader& header, const Pool& pool)
{
    const PoolFacts& facts = pool.facts();
    const std::string_view path = pool.medium().path();
    const bool is_whole = std::memcmp(header.magic, header_magic, sizeof header_magic) == 0 && header.header_bytes == sizeof header &&
                          header.log_count == logs_max && checksum_of(header) == header.checksum &&
                          header.image_bytes == facts.image_bytes && std::memcmp(header.uuid, facts.uuid.data(), sizeof header.uuid) == 0;
    if (!is_whole || pool.segments().size() != 1) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the header of the image is damaged: restore the pool from a copy", path);
    }
    const bool is_history = header.generation >= header.oldest_generation && header.oldest_generation != 0 &&
                            header.generation - header.oldest_generation < bases_max && header.generation <= UINT32_MAX;
    if (!is_history || header.versions_reserved == 0) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the history of the pool's addresses is damaged: generations {} to {}", path,
                    header.oldest_generation, header.generation);
    }
    return {};
}

Result<void> BreezePool::map(const OpenOptions& options)
{
    const bool has_journal = is_journaled(pool_);
    if (!has_journal && !pool_.medium().byte_addressable()) {
        return fail(
            SP_E_UNSUPPORTED, 0,
            "{}: the pool was made for memory that is written by stores, and this file is not: open it with STILLPOINT_MEDIUM=memory, or "
            "make a new one",
            path_);
    }
    if (has_journal) {
        if (auto read = parts_.memory.read_journaled(pool_, options.journal_round_bytes); !read) {
            return read;
        }
    }
    const auto header = parts_.memory.read_header(pool_);
    if (!header) {
        return pass_on(header.error());
    }
    const std::uintptr_t last = header->bases[header->generation % bases_max];
    const bool is_place = last % (2 * mib) == 0 && last >= window_base && last - window_base <= window_bytes - pool_.facts().image_bytes;
    const std::uintptr_t wanted = options.base_address != 0 ? options.base_address : is_place ? last : pool_.facts().base_address;
    return parts_.memory.map(pool_, {wanted, options.base_address == 0 && !options.stays});
}

Result<void> BreezePool::begin_run()
{
    // With a journal the commit record that was found is durable before the half of the epoch before it is written to.
    const bool has_record = is_journaled(pool_) && !is_removed(Canary::journal_found_epoch);
    return has_record ? stillpoint::begin_run(pool_) : pool_.record_opening();
}

Result<void> BreezePool::prepare_parts(const OpenOptions& options)
{
    const PoolHeader& header = parts_.memory.header();
    parts_.key = header.key;
    parts_.geometry = Geometry::of(parts_.memory.bytes());
    parts_.next_version = header.versions_reserved;
    parts_.versions_end = header.versions_reserved;
    look_at(parts_.findings, PoolPart::types);
    if (auto loaded = parts_.is_salvaged ? parts_.types.load_whole(parts_.memory, *parts_.findings) : parts_.types.load(parts_.memory);
        !loaded) {
        return loaded;
    }
    look_at(parts_.findings, PoolPart::objects);
    if (auto prepared = parts_.zones.prepare(parts_.memory, parts_.geometry, parts_.key); !prepared) {
        return prepared;
    }
    if (options.is_checked) {
        if (auto kept = parts_.zones.keep_freed(parts_.memory.bytes() / 4); !kept) {
            return kept;
        }
    }
    for (unsigned number = 0; number < logs_max; ++number) {
        if (auto prepared = parts_.activations[number].prepare(parts_.memory, parts_.geometry, parts_.key, number); !prepared) {
            return prepared;
        }
        if (auto prepared = transactions_[number].prepare(parts_, number); !prepared) {
            return prepared;
        }
    }
    return {};
}

Result<void> BreezePool::undo_transactions()
{
    for (Transaction& transaction : transactions_) {
        const auto found = transaction.log().find_unfinished();
        if (!found) {
            return pass_on(found.error());
        }
        if (*found && !is_removed(Canary::typed_undo)) {
            transaction.log().roll_back();
            ++figures_.transactions_undone;
        }
    }
    return {};
}

void BreezePool::end_old_transactions() noexcept
{
    for (ActivationLog& log : parts_.activations) {
        log.recover();
        // The number is not used again: what its log and its objects' headers say is void from here on.
        if (!is_removed(Canary::ended_transactions)) {
            store_word(log.header().finished, log.header().finished + 1);
            parts_.memory.write_back(&log.header().finished, sizeof log.header().finished);
        }
    }
    parts_.memory.fence();
}

Result<void> BreezePool::recover(unsigned threads)
{
    // Then old entries and records mean nothing, and the words that say so may be damaged.
    const bool is_at_rest = parts_.is_salvaged && parts_.was_closed;
    // A killed process may have stored words that are still in the CPU's caches only: what is relied on is made durable first.
    parts_.memory.write_back(&parts_.memory.header(), sizeof(PoolHeader));
    parts_.memory.persist(&parts_.activations[0].header(), logs_max * sizeof(LogHeader));
    if (auto prepared = parts_.counts.prepare({&parts_.memory, &parts_.types, &parts_.zones, &parts_.activations, parts_.key},
                                              parts_.geometry);
        !prepared) {
        return prepared;
    }
    if (auto undone = is_at_rest ? Result<void>() : undo_transactions(); !undone) {
        return undone;
    }
    figures_.objects = scan_zones(parts_, threads).objects;
    if (const std::uint64_t root = parts_.memory.header().root; !parts_.is_salvaged && root != 0 && parts_.zones.block_of(root) != root) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: the root leads to byte {} of the image, where no object begins: restore the pool from a copy", path_, root);
    }
    end_old_transactions();
    if (auto recovered = recover_rewriting(parts_); !recovered) {
        return recovered;
    }
    const auto rewritten = rewrite_pointers(parts_, threads);
    if (!rewritten) {
        return pass_on(rewritten.error());
    }
    figures_.pointers_rewritten = *rewritten;
    if (!is_at_rest) {
        parts_.counts.apply_recovered();
    }
    return {};
}

Result<std::unique_ptr<BreezePool>> BreezePool::open(Pool opened, const OpenOptions& options)
{
    const std::uint64_t begin_ns = os::monotonic_ns();
    std::unique_ptr<BreezePool> pool(new BreezePool(std::move(opened)));
    pool->path_ = pool->pool_.medium().path();
    pool->parts_.findings = options.findings;
    pool->parts_.is_salvaged = options.salvages;
    if (auto mapped = pool->map(options); !mapped) {
        return pass_on(mapped.error());
    }
    if (auto checked = check_header(pool->parts_.memory.header(), pool->pool_); !checked) {
        return pass_on(checked.error());
    }
    if (auto prepared = pool->prepare_parts(options); !prepared) {
        return pass_on(prepared.error());
    }
    // From here on nothing refuses a sound pool: it is changed.
    if (auto begun = pool->begin_run(); !begun) {
        return pass_on(begun.error());
    }
    PoolHeader& header = pool->parts_.memory.header();
    pool->parts_.was_closed = header.clean == 1;
    if (options.salvages) {
        pool->parts_.counts.keep_all();
    }
    const unsigned threads = threads_for(options);
    if (auto recovered = pool->recover(threads); !recovered) {
        return pass_on(recovered.error());
    }
    pool->parts_.memory.persist_word(header.clean, 0);
    pool->parts_.types.adopt_complete_descriptions();
    if (!options.salvages && (options.collect || header.collecting != 0)) {
        // With damaged objects there is no collection, and what the last one has left half freed may not be counted on.
        auto collected = pool->collect();
        if (!collected && collected.error().code != SP_E_POOL_CORRUPT) {
            return pass_on(collected.error());
        }
        if (!collected && header.collecting != 0) {
            pool->parts_.counts.keep_all();
        }
    }
    if (auto durable = pool->parts_.memory.make_durable(); !durable) {
        return pass_on(durable.error());
    }
    pool->figures_.opening_ns = os::monotonic_ns() - begin_ns;
    if (options.counts_in_background) {
        // Figures are a service; a program is not refused where they cannot be kept.
        if (auto shared = pool->page_.open(pool->path_, pool->pool_.facts().uuid, pool_format().name); !shared) {
            os::log(os::Severity::warning, "{}", shared.error().text());
        }
        if (auto started = pool->parts_.counts.start(&BreezePool::publish_figures, pool.get()); !started) {
            return pass_on(started.error());
        }
    }
    return pool;
}

void BreezePool::publish_figures(void* self) noexcept
{
    BreezePool& pool = *static_cast<BreezePool*>(self);
    Statistics& page = pool.page_.words();
    const auto publish = [&page](OwnStatistic word, std::uint64_t value) {
        page.engine_words[static_cast<std::size_t>(word)].store(value, std::memory_order_relaxed);
    };
    std::uint64_t committed = 0;
    std::uint64_t rolled_back = 0;
    std::uint64_t made = 0;
    for (const Transaction& transaction : pool.transactions_) {
        committed += transaction.figures().committed.load(std::memory_order_relaxed);
        rolled_back += transaction.figures().rolled_back.load(std::memory_order_relaxed);
        made += transaction.figures().objects_made.load(std::memory_order_relaxed);
    }
    publish(OwnStatistic::transactions_committed, committed);
    publish(OwnStatistic::transactions_rolled_back, rolled_back);
    publish(OwnStatistic::transactions_undone, pool.figures_.transactions_undone);
    publish(OwnStatistic::pointers_rewritten, pool.figures_.pointers_rewritten);
    publish(OwnStatistic::objects_made, made);
    publish(OwnStatistic::objects_freed, pool.parts_.counts.freed());
    publish(OwnStatistic::objects_now, pool.parts_.zones.objects());
    publish(OwnStatistic::objects_bytes, pool.parts_.zones.bytes_in_use());
    publish(OwnStatistic::damaged_objects, pool.parts_.damaged_objects);
    page.image_bytes.store(pool.parts_.memory.bytes(), std::memory_order_relaxed);
    page.recovery_ns.store(pool.figures_.opening_ns, std::memory_order_relaxed);
}

Result<void> BreezePool::close()
{
    parts_.counts.stop();
    parts_.counts.drain();
    parts_.memory.persist_word(parts_.memory.header().clean, 1);
    if (auto closed = parts_.memory.close(); !closed) {
        return closed;
    }
    return pool_.medium().check_intact();
}

void BreezePool::detach_after_fork() noexcept
{
    detached.store(true);
    parts_.counts.forget_thread();
    pool_.medium().detach_after_fork();
}

Transaction& BreezePool::begin() noexcept
{
    if (own_log == no_log) [[unlikely]] {
        own_log = threads_seen.fetch_add(1, std::memory_order_relaxed) % logs_max;
    }
    own_log = gate_.enter(own_log);
    Transaction& transaction = transactions_[own_log];
    transaction.begin();
    return transaction;
}

void BreezePool::end(Transaction& transaction) noexcept { gate_.leave(static_cast<unsigned>(&transaction - transactions_.data())); }

Result<CollectionFigures> BreezePool::collect()
{
    const std::lock_guard hold(collection_lock_);
    return breeze::collect(parts_, gate_);
}

}  // namespace stillpoint::breeze
