#include "versions/recovered_state.hpp"

#include "core/canary.hpp"
#include "core/pool_part.hpp"
#include "pool/commit_record.hpp"
#include "versions/room.hpp"

namespace stillpoint::versions {

namespace {

Result<void> take_consistent_copies(const Pool& pool, const VersionTable& table, LocationAllocator& locations, RecoveredState& state,
                                    Findings* findings)
{
    for (std::uint64_t page = 0; page < table.image_pages(); ++page) {
        const VersionSlot& copy = table.consistent(page);
        if (copy.epoch == 0) {
            continue;
        }
        if (!locations.is_free(copy.location)) {
            if (auto told = found(findings, fail(SP_E_POOL_CORRUPT, 0,
                                                 "{}: file page {} is the copy of two image pages ({} is one); restore the "
                                                 "pool from a copy",
                                                 pool.medium().path(), copy.location, page));
                !told) {
                return told;
            }
            continue;
        }
        locations.take(copy.location);
        state.pages_end = page + 1;
    }
    return {};
}

/// Whether the commit record's digest says that batches of lines are live, and they are there. Damage is told to `findings`.
Result<bool> take_deltas(const Pool& pool, const VersionTable& table, std::uint64_t durable_epoch, std::uint64_t digest, Deltas& deltas,
                         Findings* findings)
{
    if (auto done = deltas.log.reserve(pool.facts().image_bytes_max / page_bytes, table.hash_seed()); !done) {
        return pass_on(done.error());
    }
    for (const Segment& segment : pool.segments()) {
        deltas.log.add_segment(segment);
    }
    if (digest == 0) {
        return true;
    }
    auto loaded = deltas.log.load(pool.medium(), table, durable_epoch, digest, deltas.replay);
    if (loaded) {
        return loaded;
    }
    if (auto told = found(findings, pass_on(loaded.error())); !told) {
        return pass_on(told.error());
    }
    return true;
}

}  // namespace

Result<RecoveredState> recover_state(const Pool& pool, VersionTable& table, LocationAllocator& locations, Findings* findings,
                                     Deltas* deltas)
{
    const PoolFacts& facts = pool.facts();
    auto record = load_commit_record(pool, findings);
    if (!record) {
        return pass_on(record.error());
    }
    RecoveredState state;
    const RunFacts runs = facts_of_runs(pool, *record);
    const std::uint64_t digest = *record ? (*record)->table_digest : 0;
    state.report.epoch = runs.epoch;
    state.report.clean = runs.clean;
    state.report.captured_unix_ns = runs.captured_unix_ns;
    state.after_crash = runs.after_crash;
    state.next_epoch = runs.next_epoch;
    const std::uint64_t image_pages_max = facts.image_bytes_max / page_bytes;
    if (auto done = table.reserve(image_pages_max, facts.uuid); !done) {
        return pass_on(done.error());
    }
    // Every segment that the pool may still get, besides what the file has now.
    const std::uint64_t pages_to_address = file_pages_max(facts.file_bytes / page_bytes, image_pages_max, Pool::segments_max);
    if (pages_to_address > UINT32_MAX) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: a pool of {} pages is more than the engine {} can address", pool.medium().path(),
                    pages_to_address, facts.engine_name);
    }
    if (auto done = locations.reserve(pages_to_address); !done) {
        return pass_on(done.error());
    }
    look_at(findings, PoolPart::tables);
    if (auto done = table.load(pool.medium(), pool.segments(), state.report.epoch, findings); !done) {
        return pass_on(done.error());
    }
    const std::uint64_t beside_table = digest - table.digest();
    Result<bool> is_explained = beside_table == 0;
    if (deltas != nullptr) {
        is_explained = take_deltas(pool, table, state.report.epoch, beside_table, *deltas, findings);
        if (!is_explained) {
            return pass_on(is_explained.error());
        }
    }
    if (!*is_explained && !is_removed(Canary::table_digest)) {
        if (!table.unreadable()) {
            return pass_on(table.unreadable().error());  // The unreadable page may have been the page that is missing.
        }
        if (auto told = found(findings, fail(SP_E_POOL_CORRUPT, 0,
                                             "{}: the version table does not match the commit record of epoch {}; restore "
                                             "the pool from a copy",
                                             pool.medium().path(), state.report.epoch));
            !told) {
            return pass_on(told.error());
        }
    }
    for (const Segment& segment : pool.segments()) {
        locations.add_segment(segment);
    }
    locations.note_without_room(data_pages_without_room(pool.segments().front(), facts.image_bytes_first_max));
    if (auto done = take_consistent_copies(pool, table, locations, state, findings); !done) {
        return pass_on(done.error());
    }
    state.report.pages_rolled_back = table.slots_cleared();
    state.report.pages_present = table.pages_present();
    return state;
}

void write_back_what_was_recovered(Pool& pool, const VersionTable& table, bool after_crash) noexcept
{
    if (!pool.medium().byte_addressable()) {
        return;
    }
    write_back_commit_records(pool);
    if (after_crash) {
        table.write_back(pool.medium());
    }
}

}  // namespace stillpoint::versions
