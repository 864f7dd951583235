#include "pool/commit_record.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "core/pool_part.hpp"

namespace stillpoint {

namespace {

constexpr std::size_t copies = 2;
constexpr std::uint64_t epoch_max = std::uint64_t{1} << 62;  ///< larger ones would overflow what is computed from them

std::uint64_t record_checksum(const CommitRecord& record) noexcept
{
    return checksum64(&record, offsetof(CommitRecord, checksum), commit_magic);
}

std::uint64_t witness_checksum(const CommitWitness& witness) noexcept
{
    return checksum64(&witness, offsetof(CommitWitness, checksum), witness_magic);
}

bool is_valid(const CommitRecord& record, const Pool& pool, std::uint64_t parity) noexcept
{
    const bool sound = record.checksum == record_checksum(record) || is_removed(Canary::commit_checksum);
    return record.magic == commit_magic && sound && record.pool_uuid == pool.facts().uuid && record.parity == parity && record.epoch != 0 &&
           (record.epoch % 2 == parity || is_removed(Canary::commit_parity));
}

bool is_valid(const CommitWitness& witness, const Pool& pool, std::uint64_t parity) noexcept
{
    return witness.magic == witness_magic && witness.checksum == witness_checksum(witness) && is_valid(witness.record, pool, parity) &&
           witness.record.epoch <= epoch_max;
}

template <class Structure>
bool is_zero(const Structure& bytes) noexcept
{
    static constexpr Structure zero{};
    return std::memcmp(&bytes, &zero, sizeof bytes) == 0;
}

std::uint64_t page_of(const Pool& pool, std::uint64_t parity, std::size_t copy) noexcept
{
    return pool.facts().engine_area_first_page + parity * copies + copy;
}

/// The copy of the pair of `other_parity` in whose page the witness of the other parity lies.
constexpr std::size_t copy_with_witness(std::uint64_t other_parity) noexcept { return other_parity == 0 ? 1 : 0; }

std::uint64_t witness_byte(const Pool& pool, std::uint64_t parity) noexcept
{
    return byte_offset(FilePage{page_of(pool, 1 - parity, copy_with_witness(1 - parity))}) + witness_offset;
}

/// The bytes there, and zeroes where they cannot be read.
template <class Structure>
Structure read_structure(const Pool& pool, std::uint64_t offset)
{
    Structure read{};
    return pool.medium().read(offset, std::as_writable_bytes(std::span(&read, 1))) ? read : Structure{};
}

/// The record, if it is valid.
std::optional<CommitRecord> read_copy(const Pool& pool, std::uint64_t parity, std::size_t copy)
{
    const auto record = read_structure<CommitRecord>(pool, byte_offset(FilePage{page_of(pool, parity, copy)}));
    return is_valid(record, pool, parity) ? std::optional(record) : std::nullopt;
}

std::optional<CommitWitness> read_witness(const Pool& pool, std::uint64_t parity)
{
    const auto witness = read_structure<CommitWitness>(pool, witness_byte(pool, parity));
    return is_valid(witness, pool, parity) ? std::optional(witness) : std::nullopt;
}

std::optional<CommitRecord> newest_witnessed(const Pool& pool)
{
    std::optional<CommitRecord> newest;
    for (std::uint64_t parity = 0; parity < 2; ++parity) {
        const auto witness = read_witness(pool, parity);
        if (witness && (!newest || witness->record.epoch > newest->epoch)) {
            newest = witness->record;
        }
    }
    return newest;
}

/// The present bytes of a page of the area, as far as they mean something.
struct AreaPage {
    CommitRecord record{};
    CommitWitness witness{};  ///< of the other parity, in pages that have one

    void put_at(std::byte* page) const noexcept
    {
        std::memcpy(page, &record, sizeof record);
        std::memcpy(page + witness_offset, &witness, sizeof witness);
    }
};

/// A valid record of the pair, for the page that gets the witness of the other parity beside it.
CommitRecord known_record(Pool& pool, std::uint64_t parity)
{
    if (const CommitRecord& stored = pool.stored_record(parity); stored.epoch != 0) {
        return stored;
    }
    const auto own = read_copy(pool, parity, copy_with_witness(parity));
    const auto record = own ? own : read_copy(pool, parity, 1 - copy_with_witness(parity));
    return record.value_or(CommitRecord{});
}

void store_in_lines(Pool& pool, const CommitRecord& record, const CommitWitness& witness, std::size_t copies_written)
{
    Medium& medium = pool.medium();
    const auto store = [&](std::uint64_t offset, const auto& structure) {
        medium.store(offset, &structure, sizeof structure);
        if (!is_removed(Canary::commit_write_back)) {
            medium.write_back(offset, sizeof structure);
        }
    };
    for (std::size_t copy = 0; copy < copies_written; ++copy) {
        store(byte_offset(FilePage{page_of(pool, record.parity, copy)}), record);
    }
    if (witness.magic != 0) {
        store(witness_byte(pool, record.parity), witness);
    }
}

}  // namespace

Result<void> store_commit_record(Pool& pool, CommitRecord record)
{
    record.parity = is_removed(Canary::commit_parity) ? 0 : static_cast<std::uint32_t>(record.epoch % 2);
    record.checksum = record_checksum(record);
    const std::size_t copies_written = is_removed(Canary::commit_second_copy) ? 1 : copies;
    // A witness would make up for the second copy, and for the alternation of the pairs.
    const bool has_witness = !is_removed(Canary::commit_third_copy) && !is_removed(Canary::commit_second_copy) &&
                             !is_removed(Canary::commit_parity);
    CommitWitness witness{witness_magic, record, 0};
    witness.checksum = witness_checksum(witness);
    if (!has_witness) {
        witness = {};
    }
    Medium& medium = pool.medium();
    if (medium.byte_addressable()) {
        store_in_lines(pool, record, witness, copies_written);
        return {};
    }
    // One write: the pair, and the page of the other pair next to it. The other page of that pair is not touched.
    alignas(page_bytes) std::array<std::byte, (copies + 1) * page_bytes> pages{};
    const bool witness_is_first = record.parity == 1;
    std::byte* const pair = pages.data() + (witness_is_first ? page_bytes : 0);
    for (std::size_t copy = 0; copy < copies_written; ++copy) {
        AreaPage{record, {}}.put_at(pair + copy * page_bytes);
    }
    std::uint64_t first = page_of(pool, record.parity, 0);
    std::size_t size = copies * page_bytes;
    if (has_witness) {
        AreaPage{known_record(pool, 1 - record.parity), witness}.put_at(witness_is_first ? pages.data() : pair + copies * page_bytes);
        first -= witness_is_first ? 1 : 0;
        size += page_bytes;
    }
    const BlockWrite write{byte_offset(FilePage{first}), has_witness ? pages.data() : pair, size};
    pool.stored_record(record.parity) = record;
    return medium.write({&write, 1});
}

namespace {

/// The two copies of one parity.
struct PairFacts {
    std::optional<CommitRecord> newest;
    bool has_bytes = false;
    bool is_unreadable = false;  ///< at least one of them
    bool is_damaged = false;
    Failure unreadable;
};

Result<PairFacts> look_at_pair(const Pool& pool, std::uint64_t parity)
{
    PairFacts facts;
    for (std::size_t copy = 0; copy < copies; ++copy) {
        CommitRecord record{};
        const std::uint64_t offset = byte_offset(FilePage{page_of(pool, parity, copy)});
        if (auto read = pool.medium().read(offset, {reinterpret_cast<std::byte*>(&record), sizeof record}); !read) {
            facts.unreadable = read.error();  // The twin may do.
            facts.is_unreadable = true;
            facts.is_damaged = true;
            continue;
        }
        facts.has_bytes |= !is_zero(record);
        if (!is_valid(record, pool, parity)) {
            facts.is_damaged = true;
            continue;
        }
        if (record.epoch > epoch_max) {  // No torn write: its checksum holds.
            return fail(SP_E_POOL_CORRUPT, 0,
                        "{}: the commit record in file page {} has epoch {}, which no pool reaches: the pool is damaged; restore it from a "
                        "copy",
                        pool.medium().path(), page_of(pool, parity, copy), record.epoch);
        }
        if (!facts.newest || record.epoch > facts.newest->epoch) {
            facts.newest = record;
        }
    }
    return facts;
}

void remark(Findings* findings, const tl::unexpected<Failure>& failure)
{
    if (findings != nullptr) {
        findings->remark(failure.value());
    }
}

void remark_on_pair(const Pool& pool, std::uint64_t parity, const PairFacts& facts, Findings* findings)
{
    const std::uint64_t first = page_of(pool, parity, 0);
    if (facts.newest && facts.is_damaged) {
        remark(findings,
               fail(SP_E_POOL_CORRUPT, 0, "{}: one of the two commit records in file pages {} and {} is damaged; the other one is used",
                    pool.medium().path(), first, first + 1));
    }
}

/// The newest epoch's pair is not whole, and its witness is: the pair is damaged, or its commit was interrupted after all that it relies on
/// was durable. What later runs wrote, before they committed anything, is not what it relies on: they have found the same witness.
void remark_on_witness(const Pool& pool, const CommitRecord& witnessed, Findings* findings)
{
    const std::uint64_t first = page_of(pool, witnessed.parity, 0);
    remark(findings, fail(SP_E_POOL_CORRUPT, 0,
                          "{}: both commit records in file pages {} and {} are damaged; their third copy, in file page {}, is used",
                          pool.medium().path(), first, first + 1, witness_byte(pool, witnessed.parity) / page_bytes));
}

}  // namespace

Result<std::optional<CommitRecord>> load_commit_record(const Pool& pool, Findings* findings)
{
    look_at(findings, PoolPart::commit_records);
    std::optional<CommitRecord> newest;
    std::array<PairFacts, 2> pairs;
    for (std::uint64_t parity = 0; parity < 2; ++parity) {
        auto facts = look_at_pair(pool, parity);
        if (!facts) {
            return pass_on(facts.error());
        }
        pairs[parity] = *facts;
        remark_on_pair(pool, parity, *facts, findings);
        const auto& record = facts->newest;
        if (record && record->epoch < pool.epochs_end() && (!newest || record->epoch > newest->epoch)) {
            newest = record;
        }
    }
    const auto witnessed = newest_witnessed(pool);
    if (witnessed && witnessed->epoch < pool.epochs_end() && (!newest || witnessed->epoch > newest->epoch)) {
        const PairFacts& pair = pairs[witnessed->parity];
        if (!pair.newest && (pair.has_bytes || pair.is_unreadable)) {
            remark_on_witness(pool, *witnessed, findings);
        }
        return witnessed;
    }
    unsigned damaged_pairs = 0;
    for (const PairFacts& pair : pairs) {
        if (pair.is_unreadable && !pair.newest) {
            return pass_on(pair.unreadable);  // The unreadable copy may have held the newest epoch.
        }
        damaged_pairs += pair.has_bytes && !pair.newest ? 1U : 0U;
    }
    if (damaged_pairs == 1 && newest) {
        const std::uint64_t parity = 1 - newest->parity;
        remark(findings,
               fail(SP_E_POOL_CORRUPT, 0,
                    "{}: the commit records in file pages {} and {} are as a commit leaves them that a crash has interrupted; if the "
                    "last run ended normally, a newer epoch than {} is lost",
                    pool.medium().path(), page_of(pool, parity, 0), page_of(pool, parity, 1), newest->epoch));
    }
    // An interrupted write damages one pair, and while the first epoch is written the other is empty.
    if (damaged_pairs == 2) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: no commit record is valid (file pages {} to {}); restore the pool from a copy",
                    pool.medium().path(), page_of(pool, 0, 0), page_of(pool, 1, 1));
    }
    return newest;
}

std::uint64_t newest_epoch_named(const Pool& pool)
{
    const auto witnessed = newest_witnessed(pool);
    std::uint64_t newest = witnessed ? witnessed->epoch : 0;
    for (std::uint64_t parity = 0; parity < 2; ++parity) {
        for (std::size_t copy = 0; copy < copies; ++copy) {
            const auto record = read_copy(pool, parity, copy);
            newest = std::max(newest, record ? record->epoch : 0);
        }
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

namespace {

/// The area as it is to be: each pair two times its newest record, or zero, and witnesses that are valid, or zero.
class AreaRepair {
public:
    /// Records and witnesses from this epoch on are left out.
    AreaRepair(Pool& pool, std::uint64_t epochs_end) : pool_(pool)
    {
        for (std::uint64_t parity = 0; parity < 2; ++parity) {
            std::optional<CommitRecord> newest;
            if (const auto witness = read_witness(pool, parity); witness && witness->record.epoch < epochs_end) {
                wanted_[1 - parity][copy_with_witness(1 - parity)].witness = *witness;
                newest = witness->record;
            }
            for (std::size_t copy = 0; copy < copies; ++copy) {
                const auto record = read_copy(pool, parity, copy);
                if (record && record->epoch < epochs_end && (!newest || record->epoch > newest->epoch)) {
                    newest = record;
                }
            }
            for (std::size_t copy = 0; newest && copy < copies; ++copy) {
                wanted_[parity][copy].record = *newest;
            }
        }
    }

    /// True: something was written, and is not durable yet.
    [[nodiscard]] Result<bool> write()
    {
        bool written_any = false;
        for (std::uint64_t parity = 0; parity < 2; ++parity) {
            for (std::size_t copy = 0; copy < copies; ++copy) {
                if (is_as_wanted(parity, copy)) {
                    continue;
                }
                if (auto written = write_page(parity, copy); !written) {
                    return pass_on(written.error());
                }
                written_any = true;
            }
        }
        return written_any;
    }

    [[nodiscard]] Result<void> write_page(std::uint64_t parity, std::size_t copy)
    {
        page_.fill(std::byte{0});
        wanted_[parity][copy].put_at(page_.data());
        const BlockWrite write{byte_offset(FilePage{page_of(pool_, parity, copy)}), page_.data(), page_bytes};
        return pool_.medium().write({&write, 1});
    }

private:
    /// A page that cannot be read is written too: a write may make a disk replace a bad sector.
    [[nodiscard]] bool is_as_wanted(std::uint64_t parity, std::size_t copy)
    {
        const std::uint64_t offset = byte_offset(FilePage{page_of(pool_, parity, copy)});
        if (!pool_.medium().read(offset, page_)) {
            return false;
        }
        const AreaPage& wanted = wanted_[parity][copy];
        return std::memcmp(page_.data(), &wanted.record, sizeof wanted.record) == 0 &&
               (copy != copy_with_witness(parity) ||
                std::memcmp(page_.data() + witness_offset, &wanted.witness, sizeof wanted.witness) == 0);
    }

    Pool& pool_;
    AreaPage wanted_[2][copies];
    alignas(page_bytes) std::array<std::byte, page_bytes> page_{};
};

}  // namespace

Result<void> mend_torn_commit_records(Pool& pool)
{
    if (is_removed(Canary::torn_record_repaired)) {
        return {};
    }
    const auto mended = AreaRepair(pool, UINT64_MAX).write();
    if (!mended) {
        return pass_on(mended.error());
    }
    return *mended ? pool.medium().sync() : Result<void>{};
}

Result<void> drop_epochs_from(Pool& pool, std::uint64_t epoch)
{
    if (auto written = AreaRepair(pool, epoch).write(); !written) {
        return pass_on(written.error());
    }
    return pool.medium().sync();
}

namespace {

/// Block media: what recovery relied on may be in the page cache alone, since a sync of the run before failed: then its pages are clean,
/// and no later sync writes them. Written again they are not. One copy of the record stays as it is: the sound one, if the other is not.
Result<void> write_newest_record_again(Pool& pool)
{
    if (pool.medium().byte_addressable() || is_removed(Canary::record_written_again)) {
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
    return AreaRepair(pool, UINT64_MAX).write_page(parity, holds_it(0) && !holds_it(1) ? 1 : 0);
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
