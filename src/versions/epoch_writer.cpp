#include "versions/epoch_writer.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "arch/prefetch.hpp"
#include "core/canary.hpp"
#include "pool/commit_record.hpp"

namespace stillpoint::versions {

Result<void> EpochWriter::reserve(std::uint64_t image_pages_max)
{
    alignas(page_bytes) static constexpr std::byte zero_page[page_bytes] = {};
    hash_of_zeroes_ = content_hash(zero_page, table_.hash_seed());
    if (auto done = pending_.reserve(image_pages_max, "the copies of an epoch"); !done) {
        return done;
    }
    if (auto done = content_hashes_.reserve(image_pages_max, "the hashes of pages"); !done) {
        return done;
    }
    if (auto done = superseded_.reserve(image_pages_max, "the copies of an epoch"); !done) {
        return done;
    }
    if (auto done = written_here_.reserve(
            file_pages_max(pool_.facts().file_bytes / page_bytes, image_pages_max, Pool::segments_max),
            "the map of written pool pages");
        !done) {
        return done;
    }
    return gathered_.reserve(gathered_max, "the writes of an epoch");
}

/// Whether the bytes of `location` that can be read are durable, so that equal ones need not be stored.
bool EpochWriter::holds_durable_bytes(std::uint32_t location) noexcept
{
    if (!after_crash_ || is_removed(Canary::whole_page_first)) {
        return true;
    }
    const bool written = written_here_.test(location);
    written_here_.set(location);
    return written;
}

void EpochWriter::begin(std::uint64_t epoch) noexcept
{
    epoch_ = epoch;
    pending_end_ = 0;
    gathered_count_ = 0;
    locations_.begin_epoch();
}

Result<std::uint32_t> EpochWriter::choose_location(std::uint64_t image_page)
{
    if (pool_.medium().byte_addressable()) {
        const auto [first_home, second_home] = table_.home_locations(image_page);
        for (const std::uint32_t wanted : {table_.working(image_page).location, first_home, second_home}) {
            if (wanted != 0 && locations_.is_free(wanted)) {
                locations_.take(wanted);
                return wanted;
            }
        }
    }
    if (run_.count == 0) {
        constexpr std::uint32_t run_pages_max = 4096;
        run_ = locations_.take_run(pool_.medium().byte_addressable() ? 1 : run_pages_max);
    }
    if (run_.count == 0) {
        return fail(SP_E_POOL_FULL, 0, "{}: no free page for a working copy; the pool is damaged",
                    pool_.medium().path());
    }
    --run_.count;
    return run_.first++;
}

/// The copy that the page is compared with, on its way from memory while the page's hash is computed.
void EpochWriter::prefetch_older_copy(std::uint32_t location) const noexcept
{
    if (location == 0 || !pool_.medium().byte_addressable()) {
        return;
    }
    arch::prefetch(pool_.medium().mapping() + byte_offset(FilePage{location}), page_bytes);
}

Result<bool> EpochWriter::write_page(std::uint64_t index, std::uint64_t image_page,
                                     const std::byte* bytes, bool certain)
{
    while (pending_end_ <= index) {
        pending_[pending_end_++] = {};
    }
    Pending& pending = pending_[index];
    const bool first_time = pending.location == 0;
    prefetch_older_copy(first_time ? table_.working(image_page).location : pending.location);
    const std::uint64_t content = content_hash(bytes, table_.hash_seed());
    const std::atomic_ref<std::uint64_t> newest(content_hashes_[image_page]);
    if (!certain && first_time && content == newest.load(std::memory_order_relaxed)) {
        return false;
    }
    if (manner_.leaves_out_zero_pages && !certain && first_time && content == hash_of_zeroes_ &&
        table_.consistent(image_page).epoch == 0) {
        return false;
    }
    newest.store(content, std::memory_order_relaxed);
    bool has_old_bytes = !first_time;
    if (first_time) {
        const std::uint32_t old_location = table_.working(image_page).location;
        if (is_removed(Canary::superseded_copies) && table_.consistent(image_page).epoch != 0) {
            locations_.give_back(table_.consistent(image_page).location);
        }
        auto location = choose_location(image_page);
        if (!location) {
            return pass_on(location.error());
        }
        has_old_bytes = *location == old_location && holds_durable_bytes(*location);
        pending.image_page = static_cast<std::uint32_t>(image_page);
        pending.location = *location;
    }
    pending.checksum = page_checksum(content, image_page, epoch_);
    if (pool_.medium().byte_addressable()) {
        store_changed_lines(pending.location, bytes, !has_old_bytes);
        return true;
    }
    if (auto gathered = gather(pending.location, bytes); !gathered) {
        return pass_on(gathered.error());
    }
    return true;
}

/// Byte difference [PMThreads §3.1] at the granularity that the medium writes back.
void EpochWriter::store_changed_lines(std::uint32_t location, const std::byte* bytes, bool whole_page)
{
    Medium& medium = pool_.medium();
    const std::uint64_t offset = byte_offset(FilePage{location});
    const std::lock_guard guard(medium_lock_);
    if (whole_page) {
        medium.store_nontemporal(offset, bytes, page_bytes);
        return;
    }
    const std::byte* const old_bytes = medium.mapping() + offset;
    std::size_t at = 0;
    while (at < page_bytes) {
        if (std::memcmp(old_bytes + at, bytes + at, cache_line_bytes) == 0) {
            at += cache_line_bytes;
            continue;
        }
        std::size_t end = at + cache_line_bytes;
        while (end < page_bytes && std::memcmp(old_bytes + end, bytes + end, cache_line_bytes) != 0) {
            end += cache_line_bytes;
        }
        medium.store(offset + at, bytes + at, end - at);
        if (!is_removed(Canary::line_write_back)) {
            medium.write_back(offset + at, end - at);
        }
        at = end;
    }
}

Result<void> EpochWriter::gather(std::uint32_t location, const std::byte* bytes)
{
    const std::uint64_t offset = byte_offset(FilePage{location});
    if (gathered_count_ > 0) {
        BlockWrite& last = gathered_[gathered_count_ - 1];
        if (last.offset + last.size == offset && last.data + last.size == bytes) {
            last.size += page_bytes;
            return {};
        }
    }
    if (gathered_count_ == gathered_max) {
        if (auto flushed = flush_gathered(); !flushed) {
            return flushed;
        }
    }
    gathered_[gathered_count_++] = {offset, bytes, page_bytes};
    return {};
}

Result<void> EpochWriter::flush_gathered()
{
    if (gathered_count_ == 0) {
        return {};
    }
    const std::span<BlockWrite> gathered(gathered_.data(), static_cast<std::size_t>(gathered_count_));
    gathered_count_ = 0;
    std::size_t first = 0;
    std::uint64_t batch_bytes = 0;
    for (std::size_t i = 0; i < gathered.size(); ++i) {
        if (i > first && batch_bytes + gathered[i].size > manner_.batch_bytes_max) {
            if (auto written = write_batch(gathered.subspan(first, i - first)); !written) {
                return written;
            }
            first = i;
            batch_bytes = 0;
        }
        batch_bytes += gathered[i].size;
    }
    return write_batch(gathered.subspan(first));
}

Result<void> EpochWriter::write_batch(std::span<const BlockWrite> batch)
{
    const std::lock_guard guard(medium_lock_);
    return pool_.medium().write(batch);
}

void EpochWriter::store_changed_entries(std::uint64_t offset, const std::byte* table_page) noexcept
{
    Medium& medium = pool_.medium();
    for (std::size_t at = 0; at < page_bytes; at += sizeof(VersionEntry)) {
        if (std::memcmp(medium.mapping() + offset + at, table_page + at, sizeof(VersionEntry)) != 0) {
            medium.store(offset + at, table_page + at, sizeof(VersionEntry));
            if (!is_removed(Canary::table_write_back)) {
                medium.write_back(offset + at, sizeof(VersionEntry));
            }
        }
    }
}

Result<void> EpochWriter::write_table()
{
    if (is_removed(Canary::table_write)) {
        return {};
    }
    if (pool_.medium().byte_addressable()) {
        table_.take_changed_pages(0, [&](std::uint64_t offset, const std::byte* bytes, std::size_t size) {
            for (std::size_t page = 0; page < size; page += page_bytes) {
                const std::lock_guard guard(medium_lock_);
                store_changed_entries(offset + page, bytes + page);
            }
        });
        return {};
    }
    Result<void> outcome;
    // Writing a few unchanged pages costs less than splitting a write.
    constexpr std::uint64_t gap_pages_max = 3;
    table_.take_changed_pages(gap_pages_max, [&](std::uint64_t offset, const std::byte* bytes, std::size_t size) {
        for (std::size_t at = 0; at < size;) {
            const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(size - at, manner_.batch_bytes_max));
            if (gathered_count_ == gathered_max && outcome) {
                outcome = flush_gathered();
            }
            if (outcome) {
                gathered_[gathered_count_++] = {offset + at, bytes + at, part};
            }
            at += part;
        }
    });
    return outcome;
}

Result<void> EpochWriter::make_durable()
{
    const std::lock_guard guard(medium_lock_);
    if (pool_.medium().byte_addressable()) {
        pool_.medium().fence();
    } else if (auto synced = pool_.medium().sync(); !synced) {
        return synced;
    }
    // Behind the sync, so that nothing is acknowledged that a file cut off meanwhile has lost.
    return pool_.medium().check_intact();
}

Result<void> EpochWriter::write_commit_record(const EpochFacts& facts, std::uint64_t pages)
{
    CommitRecord record{};
    record.magic = commit_magic;
    record.pool_uuid = pool_.facts().uuid;
    record.epoch = facts.epoch;
    record.generation = pool_.facts().generation;
    record.table_digest = table_.digest();
    record.image_pages = facts.image_pages;
    record.pages_in_epoch = pages;
    record.captured_unix_ns = facts.captured_unix_ns;
    record.flags = facts.clean ? commit_clean : 0u;
    const std::lock_guard guard(medium_lock_);
    return store_commit_record(pool_, record);
}

Result<void> EpochWriter::commit(const EpochFacts& facts)
{
    std::uint64_t superseded_count = 0;
    std::uint64_t pages = 0;
    for (std::uint64_t i = 0; i < pending_end_; ++i) {
        const Pending& pending = pending_[i];
        if (pending.location == 0) {
            continue;
        }
        const VersionSlot& old = table_.consistent(pending.image_page);
        if (old.epoch != 0 && !is_removed(Canary::superseded_copies)) {
            superseded_[superseded_count++] = old.location;
        }
        table_.switch_copy(pending.image_page, {facts.epoch, pending.location, pending.checksum});
        ++pages;
    }
    if (auto done = write_table(); !done) {
        return done;
    }
    if (auto done = flush_gathered(); !done) {
        return done;
    }
    if (!is_removed(Canary::epoch_durable)) {
        if (auto done = make_durable(); !done) {
            return done;
        }
    }
    if (auto done = write_commit_record(facts, pages); !done) {
        return done;
    }
    if (!is_removed(Canary::commit_durable)) {
        if (auto done = make_durable(); !done) {
            return done;
        }
    }
    // Until here the older copies were what a crash would return to.
    for (std::uint64_t i = 0; i < superseded_count; ++i) {
        locations_.give_back(superseded_[i]);
    }
    return {};
}

}  // namespace stillpoint::versions
