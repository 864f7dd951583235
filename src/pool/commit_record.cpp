#include "pool/commit_record.hpp"

#include <array>
#include <cstring>
#include <span>

#include "arch/checksum.hpp"
#include "core/canary.hpp"

namespace stillpoint {

namespace {

constexpr std::size_t copies = 2;
constexpr std::uint64_t epoch_max = std::uint64_t{1} << 62;  ///< larger ones would overflow what is computed from them

std::uint64_t record_checksum(const CommitRecord& record) noexcept
{
    return checksum64(&record, offsetof(CommitRecord, checksum), commit_magic);
}

bool is_valid(const CommitRecord& record, const Pool& pool, std::uint64_t parity) noexcept
{
    const bool sound = record.checksum == record_checksum(record) || is_removed(Canary::commit_checksum);
    return record.magic == commit_magic && sound && record.pool_uuid == pool.facts().uuid && record.parity == parity && record.epoch != 0 &&
           (record.epoch % 2 == parity || is_removed(Canary::commit_parity));
}

std::uint64_t page_of(const Pool& pool, std::uint64_t parity, std::size_t copy) noexcept
{
    return pool.facts().engine_area_first_page + parity * copies + copy;
}

/// The record, if it is valid.
std::optional<CommitRecord> read_copy(const Pool& pool, std::uint64_t parity, std::size_t copy)
{
    CommitRecord record{};
    const std::uint64_t offset = byte_offset(FilePage{page_of(pool, parity, copy)});
    const bool read = pool.medium().read(offset, std::as_writable_bytes(std::span(&record, 1))).has_value();
    return read && is_valid(record, pool, parity) ? std::optional(record) : std::nullopt;
}

}  // namespace

Result<void> store_commit_record(Pool& pool, CommitRecord record)
{
    record.parity = is_removed(Canary::commit_parity) ? 0 : static_cast<std::uint32_t>(record.epoch % 2);
    record.checksum = record_checksum(record);
    alignas(page_bytes) std::array<std::byte, copies * page_bytes> pages{};
    const std::size_t copies_written = is_removed(Canary::commit_second_copy) ? 1 : copies;
    for (std::size_t copy = 0; copy < copies_written; ++copy) {
        std::memcpy(pages.data() + copy * page_bytes, &record, sizeof record);
    }
    const std::uint64_t offset = byte_offset(FilePage{page_of(pool, record.parity, 0)});
    Medium& medium = pool.medium();
    if (medium.byte_addressable()) {
        for (std::size_t copy = 0; copy < copies_written; ++copy) {
            medium.store(offset + copy * page_bytes, &record, sizeof record);
            if (!is_removed(Canary::commit_write_back)) {
                medium.write_back(offset + copy * page_bytes, sizeof record);
            }
        }
        return {};
    }
    const BlockWrite write{offset, pages.data(), pages.size()};
    return medium.write({&write, 1});
}

Result<std::optional<CommitRecord>> load_commit_record(const Pool& pool, Findings* findings)
{
    std::optional<CommitRecord> newest;
    Failure unreadable;
    unsigned damaged_pairs = 0;
    for (std::uint64_t parity = 0; parity < 2; ++parity) {
        bool pair_has_bytes = false;
        bool pair_has_record = false;
        bool pair_is_unreadable = false;
        bool pair_is_damaged = false;
        for (std::size_t copy = 0; copy < copies; ++copy) {
            CommitRecord record{};
            const std::uint64_t offset = byte_offset(FilePage{page_of(pool, parity, copy)});
            if (auto read = pool.medium().read(offset, {reinterpret_cast<std::byte*>(&record), sizeof record}); !read) {
                unreadable = read.error();  // The twin may do.
                pair_is_unreadable = true;
                pair_is_damaged = true;
                continue;
            }
            const CommitRecord zero{};
            pair_has_bytes |= std::memcmp(&record, &zero, sizeof record) != 0;
            if (!is_valid(record, pool, parity)) {
                pair_is_damaged = true;
                continue;
            }
            if (record.epoch > epoch_max) {  // No torn write: its checksum holds.
                return fail(
                    SP_E_POOL_CORRUPT, 0,
                    "{}: the commit record in file page {} has epoch {}, which no pool reaches: the pool is damaged; restore it from a copy",
                    pool.medium().path(), page_of(pool, parity, copy), record.epoch);
            }
            pair_has_record = true;
            if (!newest || record.epoch > newest->epoch) {
                newest = record;
            }
        }
        if (findings != nullptr && pair_has_record && pair_is_damaged) {
            findings->remark(fail(SP_E_POOL_CORRUPT, 0,
                                  "{}: one of the two commit records in file pages {} and {} is damaged; the other one is used",
                                  pool.medium().path(), page_of(pool, parity, 0), page_of(pool, parity, 1))
                                 .value());
        }
        if (pair_is_unreadable && !pair_has_record) {
            return pass_on(unreadable);  // The unreadable copy may have held the newest epoch.
        }
        if (pair_has_bytes && !pair_has_record) {
            ++damaged_pairs;
        }
    }
    // An interrupted write damages one pair, and while the first epoch is written the other is empty.
    if (damaged_pairs == 2) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: no commit record is valid (file pages {} to {}); restore the pool from a copy",
                    pool.medium().path(), page_of(pool, 0, 0), page_of(pool, 1, 1));
    }
    return newest;
}

RunFacts facts_of_runs(const Pool& pool, const std::optional<CommitRecord>& record) noexcept
{
    RunFacts facts;
    // A pool that was named and never committed has no record, and the first run is generation 1.
    std::uint64_t committed_generation = 1;
    if (record) {
        committed_generation = record->generation;
        facts.epoch = record->epoch;
        facts.captured_unix_ns = record->captured_unix_ns;
        // A later generation that opened the pool and ended before it committed anything crashed.
        const std::uint64_t own_generation = pool.read_only() ? 0 : 1;
        const bool nobody_opened_since = record->generation + own_generation >= pool.facts().generation;
        facts.clean = (record->flags & commit_clean) != 0 && nobody_opened_since;
    }
    // A run that ends in a crash has one epoch in flight, perhaps, and the next one running. Their
    // numbers may be known outside and are never used again; nor are those of runs since the last
    // commit that committed nothing. The step is odd, so the record in force is not overwritten.
    const std::uint64_t runs_since = pool.facts().generation > committed_generation ? pool.facts().generation - committed_generation : 0;
    facts.after_crash = record ? !facts.clean : runs_since != 0;
    const bool numbers_may_be_known = facts.after_crash && !is_removed(Canary::skipped_numbers);
    facts.next_epoch = facts.epoch + 1 + (numbers_may_be_known ? 2 * runs_since : 0);
    return facts;
}

void write_back_commit_records(Pool& pool) noexcept
{
    if (pool.medium().byte_addressable() && !is_removed(Canary::recovered_record_durable)) {
        pool.medium().write_back(byte_offset(FilePage{page_of(pool, 0, 0)}), commit_area_pages * page_bytes);
    }
}

Result<void> mend_torn_commit_records(Pool& pool)
{
    alignas(page_bytes) static constexpr std::array<std::byte, page_bytes> zeroes{};
    alignas(page_bytes) std::array<std::byte, page_bytes> twin{};
    Medium& medium = pool.medium();
    bool mended = false;
    for (std::uint64_t parity = 0; parity < 2 && !is_removed(Canary::torn_record_repaired); ++parity) {
        std::array<CommitRecord, copies> records{};
        std::array<bool, copies> valid{};
        for (std::size_t copy = 0; copy < copies; ++copy) {
            // A page that cannot be read is written too: a write may make a disk replace a bad sector.
            valid[copy] =
                medium.read(byte_offset(FilePage{page_of(pool, parity, copy)}), std::as_writable_bytes(std::span(&records[copy], 1)))
                    .has_value() &&
                is_valid(records[copy], pool, parity);
        }
        for (std::size_t copy = 0; copy < copies; ++copy) {
            const std::size_t other = 1 - copy;
            const bool stale = valid[other] && (!valid[copy] || records[copy].epoch < records[other].epoch);
            const bool torn = !valid[0] && !valid[1] && std::memcmp(&records[copy], zeroes.data(), sizeof(CommitRecord)) != 0;
            if (!stale && !torn) {
                continue;
            }
            twin = zeroes;
            if (stale) {
                std::memcpy(twin.data(), &records[other], sizeof(CommitRecord));
            }
            const BlockWrite write{byte_offset(FilePage{page_of(pool, parity, copy)}), twin.data(), page_bytes};
            if (auto written = medium.write({&write, 1}); !written) {
                return written;
            }
            mended = true;
        }
    }
    return mended ? medium.sync() : Result<void>{};
}

namespace {

/// Block media: what recovery relied on may be in the page cache alone, since a sync of the run before failed: then its pages are clean,
/// and no later sync writes them. Written again they are not. One copy of the record stays as it is: the sound one, if the other is not.
Result<void> write_newest_record_again(Pool& pool)
{
    Medium& medium = pool.medium();
    if (medium.byte_addressable() || is_removed(Canary::record_written_again)) {
        return {};
    }
    const auto newest = load_commit_record(pool);
    if (!newest || !*newest) {
        return newest ? Result<void>{} : pass_on(newest.error());
    }
    const std::uint64_t parity = (*newest)->parity;
    const auto holds_it = [&](std::size_t copy) {
        const auto record = read_copy(pool, parity, copy);
        return record && record->epoch == (*newest)->epoch;
    };
    const std::size_t copy = holds_it(0) && !holds_it(1) ? 1 : 0;
    alignas(page_bytes) std::array<std::byte, page_bytes> page{};
    std::memcpy(page.data(), &**newest, sizeof(CommitRecord));
    const BlockWrite write{byte_offset(FilePage{page_of(pool, parity, copy)}), page.data(), page.size()};
    return medium.write({&write, 1});
}

}  // namespace

Result<void> begin_run(Pool& pool)
{
    if (auto written = write_newest_record_again(pool); !written) {
        return written;
    }
    if (auto recorded = pool.record_opening(); !recorded) {
        return recorded;
    }
    if (auto published = pool.medium().publish(); !published) {
        return published;
    }
    return mend_torn_commit_records(pool);
}

}  // namespace stillpoint
