#include "engines/breeze/journal.hpp"

#include <algorithm>
#include <cstring>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "os/clock.hpp"
#include "pool/commit_record.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t journal_seed = 0x425245454a4f5552;
constexpr std::uint64_t round_bytes_usual = 64 * mib;

}  // namespace

std::uint64_t Journal::checksum_of(const JournalRecord& record) const noexcept
{
    return checksum64(&record.epoch, journal_record_bytes(record.pages, record.lines) - sizeof record.checksum, seed_);
}

std::uint64_t Journal::offset_of(std::uint64_t place) const noexcept
{
    const std::uint64_t half = is_removed(Canary::journal_halves) ? 0 : epoch_ % 2;
    return first_offset_ + half * half_bytes_ + place;
}

Result<void> Journal::replay(Pool& pool, std::byte* image, ReservedList<std::uint64_t>& changed, std::uint64_t round_bytes)
{
    const Segment& segment = pool.segments().front();
    pool_ = &pool;
    image_pages_ = segment.image_pages;
    half_bytes_ = journal_half_pages(image_pages_) * page_bytes;
    first_offset_ = (segment.first_file_page + segment.image_pages) * page_bytes;
    round_bytes_ = round_bytes != 0 ? round_bytes : round_bytes_usual;
    seed_ = checksum64(pool.facts().uuid.data(), pool.facts().uuid.size(), journal_seed);
    if (auto reserved = staging_.reserve(half_bytes_, "a record of the journal"); !reserved) {
        return reserved;
    }
    const auto in_force = load_commit_record(pool);
    if (!in_force) {
        return pass_on(in_force.error());
    }
    if (*in_force) {  // A new pool has no journal yet.
        epoch_ = (*in_force)->epoch;
        if (auto replayed = replay_epoch(image, changed, (*in_force)->table_digest); !replayed) {
            return replayed;
        }
    }
    ++epoch_;
    is_in_force_ = false;
    used_ = 0;
    sequence_ = 0;
    return {};
}

Result<void> Journal::replay_epoch(std::byte* image, ReservedList<std::uint64_t>& changed, std::uint64_t first_checksum)
{
    os::ReservedBitmap is_changed;
    if (auto reserved = is_changed.reserve(image_pages_, "the pages of the journal"); !reserved) {
        return reserved;
    }
    std::uint64_t place = 0;
    std::uint64_t sequence = 0;
    while (half_bytes_ - place >= page_bytes) {
        const auto found = read_record(place);
        if (!found) {
            return pass_on(found.error());
        }
        if (*found == Found::none || record().sequence != sequence + 1) {
            break;
        }
        if (sequence == 0 && first_checksum != 0 && record().checksum != first_checksum) {
            break;
        }
        if (auto applied = apply(image, is_changed, changed); !applied) {
            return applied;
        }
        ++sequence;
        place += round_up(journal_record_bytes(record().pages, record().lines), page_bytes);
    }
    if (sequence == 0 && first_checksum != 0 && !is_removed(Canary::journal_first_record)) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the first record of the journal's epoch {} is damaged: restore the pool from a copy",
                    pool_->medium().path(), epoch_);
    }
    return is_removed(Canary::journal_gap) ? Result<void>{} : check_end(place, sequence);
}

Result<Journal::Found> Journal::read_record(std::uint64_t place)
{
    const Medium& medium = pool_->medium();
    const JournalRecord& found = record();
    if (auto read = medium.read(offset_of(place), {staging_.data(), page_bytes}); !read) {
        return pass_on(read.error());
    }
    const std::uint64_t room = half_bytes_ - place - sizeof found;
    const bool fits = found.pages <= room / sizeof(JournalPage) &&
                      found.lines <= (room - found.pages * sizeof(JournalPage)) / sizeof(JournalLine);
    if ((found.epoch != epoch_ && !is_removed(Canary::journal_epoch)) || found.sequence == 0 || !fits || found.pages + found.lines == 0) {
        return Found::none;
    }
    const std::uint64_t bytes = journal_record_bytes(found.pages, found.lines);
    if (bytes > page_bytes) {
        if (auto read = medium.read(offset_of(place) + page_bytes, {staging_.data() + page_bytes, bytes - page_bytes}); !read) {
            return pass_on(read.error());
        }
    }
    const bool is_whole = checksum_of(found) == found.checksum || is_removed(Canary::journal_record_checksum);
    return is_whole ? Found::whole : Found::none;
}

Result<void> Journal::apply(std::byte* image, os::ReservedBitmap& is_changed, ReservedList<std::uint64_t>& changed)
{
    const auto put = [&](std::uint64_t page, std::uint64_t offset, const std::byte* bytes, std::uint64_t size) -> Result<void> {
        if (page >= image_pages_) {
            return fail(SP_E_POOL_CORRUPT, 0, "{}: the journal has a page outside of the image: restore the pool from a copy",
                        pool_->medium().path());
        }
        if (!is_changed.test(page)) {
            is_changed.set(page);
            changed.push_back(page);
        }
        std::memcpy(image + offset, bytes, size);
        return {};
    };
    const JournalPage* const all_pages = pages();
    for (const JournalPage* page = all_pages; page != all_pages + record().pages; ++page) {
        if (auto done = put(page->number, page->number * page_bytes, page->bytes, page_bytes); !done) {
            return done;
        }
    }
    const auto* const all_lines = reinterpret_cast<const JournalLine*>(all_pages + record().pages);
    for (const JournalLine* line = all_lines; line != all_lines + record().lines; ++line) {
        auto done = put(line->number / lines_of_page, line->number * cache_line_bytes, line->bytes, cache_line_bytes);
        if (!done) {
            return done;
        }
    }
    return {};
}

Result<void> Journal::check_end(std::uint64_t place, std::uint64_t sequence)
{
    // A record is written when the one before it is durable, so the last one alone can be torn. No record begins beyond a round.
    const std::uint64_t end = std::min(half_bytes_, round_bytes_usual + page_bytes);
    os::ReservedArray<std::byte> buffer;
    if (auto reserved = buffer.reserve(mib, "the end of a journal"); !reserved) {
        return reserved;
    }
    std::uint64_t first = place;  // The buffer has what lies from here on up to `buffered`.
    std::uint64_t buffered = place;
    for (place += page_bytes; place < end; place += page_bytes) {
        if (place >= buffered) {
            const std::uint64_t bytes = std::min(mib, end - place);
            if (auto read = pool_->medium().read(offset_of(place), {buffer.data(), bytes}); !read) {
                return read;
            }
            first = place;
            buffered = place + bytes;
        }
        const auto& header = *reinterpret_cast<const JournalRecord*>(buffer.data() + (place - first));
        if (header.epoch != epoch_ || header.sequence <= sequence + 1) {
            continue;
        }
        const auto found = read_record(place);
        if (!found) {
            return pass_on(found.error());
        }
        if (*found == Found::whole) {
            return fail(SP_E_POOL_CORRUPT, 0,
                        "{}: record {} of the journal's epoch {} is damaged, and later ones are there: restore the pool from a copy",
                        pool_->medium().path(), sequence + 1, epoch_);
        }
    }
    return {};
}

Result<void> Journal::append(const Entries& entries) noexcept
{
    const std::uint64_t bytes = journal_record_bytes(entries.pages, entries.lines);
    const std::uint64_t padded = round_up(bytes, page_bytes);
    std::memset(staging_.data() + bytes, 0, padded - bytes);
    JournalRecord& made = record();
    made = {.checksum = 0, .epoch = epoch_, .sequence = sequence_ + 1, .pages = entries.pages, .lines = entries.lines, .reserved = {}};
    made.checksum = checksum_of(made);
    const std::uint64_t checksum = made.checksum;
    Medium& medium = pool_->medium();
    const BlockWrite write{offset_of(used_), staging_.data(), padded};
    if (auto written = medium.write({&write, 1}); !written) {
        return written;
    }
    if (!is_removed(is_in_force_ ? Canary::journal_record_sync : Canary::journal_first_sync)) {
        if (auto synced = medium.sync(); !synced) {
            return synced;
        }
    }
    staging_.discard_from(round_bytes_usual);  // After a large transaction.
    used_ += padded;
    ++sequence_;
    return is_in_force_ ? Result<void>{} : put_in_force(checksum, entries.pages, false);
}

Result<void> Journal::begin_epoch(std::uint64_t pages_written, bool is_clean) noexcept
{
    if (!is_removed(Canary::journal_pages_sync)) {
        if (auto synced = pool_->medium().sync(); !synced) {
            return synced;
        }
    }
    ++epoch_;
    used_ = 0;
    sequence_ = 0;
    return put_in_force(0, pages_written, is_clean);
}

Result<void> Journal::put_in_force(std::uint64_t first_checksum, std::uint64_t pages, bool is_clean) noexcept
{
    CommitRecord record{};
    record.magic = commit_magic;
    record.pool_uuid = pool_->facts().uuid;
    record.epoch = epoch_;
    record.generation = pool_->facts().generation;
    record.table_digest = first_checksum;
    record.image_pages = image_pages_;
    record.pages_in_epoch = pages;
    record.captured_unix_ns = os::wall_clock_ns();
    record.flags = is_clean ? commit_clean : 0u;
    if (auto stored = store_commit_record(*pool_, record); !stored) {
        return stored;
    }
    is_in_force_ = true;
    return is_removed(Canary::journal_epoch_sync) ? Result<void>{} : pool_->medium().sync();
}

}  // namespace stillpoint::breeze
