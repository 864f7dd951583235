#include "versions/epoch_writer.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>

#include "arch/prefetch.hpp"
#include "core/canary.hpp"
#include "pool/commit_record.hpp"

namespace stillpoint::versions {

namespace {

constexpr int nearly_all_lines = lines_per_page * 3 / 4;  ///< of a page

}  // namespace

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
    if (auto done = written_here_.reserve(file_pages_max(pool_.facts().file_bytes / page_bytes, image_pages_max, Pool::segments_max),
                                          "the map of written pool pages");
        !done) {
        return done;
    }
    if (auto done = lines_between_.reserve(image_pages_max, "the changes of pages"); !done) {
        return done;
    }
    if (auto done = older_location_.reserve(image_pages_max, "the changes of pages"); !done) {
        return done;
    }
    if (auto done = whole_stores_left_.reserve(image_pages_max, "the changes of pages"); !done) {
        return done;
    }
    if (auto done = written_lately_.reserve(image_pages_max, "the changes of pages"); !done) {
        return done;
    }
    if (auto done = table_pages_.reserve(table_pages_at_once, "table pages of an epoch"); !done) {
        return done;
    }
    return gathered_.reserve(gathered_max, "the writes of an epoch");
}

std::optional<std::uint64_t> EpochWriter::lines_to_store(std::uint64_t image_page, std::uint32_t location, std::uint64_t lines) noexcept
{
    if (is_removed(Canary::whole_page_first)) {
        return all_lines;
    }
    const auto owner = static_cast<std::uint32_t>(image_page) + 1;
    const std::uint32_t written_for = std::exchange(written_here_[location], owner);
    if (written_for == 0) {
        return std::nullopt;
    }
    const bool is_older_copy = written_for == owner && older_location_[image_page] == location;
    return is_older_copy ? lines | lines_between_[image_page] : all_lines;
}

void EpochWriter::begin(std::uint64_t epoch) noexcept
{
    epoch_ = epoch;
    pending_end_ = 0;
    gathered_count_ = 0;
    locations_.begin_epoch();
}

Result<void> EpochWriter::take_room()
{
    // Copies of an earlier run may lie in all of the pages that get room.
    for (FilePageRange pages = locations_.room_to_take(); !pages.is_empty(); pages = locations_.room_to_take()) {
        const std::lock_guard guard(medium_lock_);
        if (auto taken = pool_.medium().allocate(pages.bytes()); !taken) {
            return locations_.has_free_pages() ? Result<void>{} : taken;
        }
        locations_.note_room(pages);
    }
    return {};
}

Result<std::uint32_t> EpochWriter::take_home(std::uint64_t image_page)
{
    const auto homes = table_.home_locations(image_page);
    for (const std::uint32_t home : homes) {
        if (locations_.is_free_and_has_room(home)) {
            locations_.take(home);
            return home;
        }
    }
    for (const std::uint32_t home : homes) {
        if (!locations_.has_late_second_copies() || !locations_.is_free(home)) {
            continue;
        }
        const FilePageRange page{home, home + std::uint64_t{1}};
        const std::lock_guard guard(medium_lock_);
        if (auto taken = pool_.medium().allocate(page.bytes()); !taken) {
            return taken.error().code == SP_E_NO_SPACE ? Result<std::uint32_t>(0) : pass_on(taken.error());
        }
        locations_.note_room(page);
        locations_.take(home);
        return home;
    }
    return 0;
}

Result<std::uint32_t> EpochWriter::choose_location(std::uint64_t image_page)
{
    return write_rules_.await_room([&] { return find_location(image_page); });
}

Result<std::uint32_t> EpochWriter::find_location(std::uint64_t image_page)
{
    if (pool_.medium().byte_addressable()) {
        if (const auto home = take_home(image_page); !home || *home != 0) {
            return home;
        }
    }
    if (run_.count == 0) {
        if (auto taken = take_room(); !taken) {
            return pass_on(taken.error());
        }
        constexpr std::uint32_t run_pages_max = 4096;
        run_ = locations_.take_run(pool_.medium().byte_addressable() ? 1 : run_pages_max);
    }
    if (run_.count == 0) {
        return fail(SP_E_POOL_FULL, 0, "{}: no free page for a working copy; the pool is damaged", pool_.medium().path());
    }
    --run_.count;
    return run_.first++;
}

bool EpochWriter::are_compared(std::uint64_t lines) noexcept
{
    return std::popcount(lines) > nearly_all_lines;  // To read a line costs less than to store one.
}

/// Prefetches the copy that the page will be compared with, while the page's hash is computed: `location` if it has one.
void EpochWriter::prefetch_older_copy(std::uint64_t image_page, std::uint32_t location, std::uint64_t lines) const noexcept
{
    if (!pool_.medium().byte_addressable() || whole_stores_left_[image_page] != 0) {
        return;
    }
    if (location == 0) {
        const auto [first_home, second_home] = table_.home_locations(image_page);
        location = table_.consistent(image_page).location == first_home ? second_home : first_home;
        if (written_here_[location] == 0 ||
            (older_location_[image_page] == location && !are_compared(lines | lines_between_[image_page]))) {
            return;
        }
    }
    arch::prefetch(pool_.medium().mapping() + byte_offset(FilePage{location}), page_bytes);
}

Result<bool> EpochWriter::write_page(std::uint64_t index, std::uint64_t image_page, const std::byte* bytes, bool certain,
                                     std::uint64_t lines)
{
    while (pending_end_ <= index) {
        pending_[pending_end_++] = {};
    }
    Pending& pending = pending_[index];
    const bool first_time = pending.location == 0;
    prefetch_older_copy(image_page, pending.location, lines);
    const std::uint64_t content = content_hash(bytes, table_.hash_seed());
    const std::atomic_ref<std::uint64_t> newest(content_hashes_[image_page]);
    if (first_time && content == newest.load(std::memory_order_relaxed)) {
        return false;
    }
    if (write_rules_.leaves_out_zero_pages && !certain && first_time && content == hash_of_zeroes_ &&
        table_.consistent(image_page).epoch == 0) {
        return false;
    }
    newest.store(content, std::memory_order_relaxed);
    std::optional<std::uint64_t> differing = all_lines;
    if (first_time) {
        if (is_removed(Canary::superseded_copies) && table_.consistent(image_page).epoch != 0) {
            locations_.give_back(table_.consistent(image_page).location);
        }
        auto location = choose_location(image_page);
        if (!location) {
            return pass_on(location.error());
        }
        if (pool_.medium().byte_addressable()) {
            differing = lines_to_store(image_page, *location, lines);
        }
        pending.image_page = static_cast<std::uint32_t>(image_page);
        pending.location = *location;
    }
    pending.lines |= lines;
    pending.checksum = page_checksum(content, image_page, epoch_);
    if (pool_.medium().byte_addressable()) {
        store_page(image_page, pending.location, bytes, differing);
        return true;
    }
    if (auto gathered = gather(pending.location, bytes); !gathered) {
        return pass_on(gathered.error());
    }
    return true;
}

void EpochWriter::store_page(std::uint64_t image_page, std::uint32_t location, const std::byte* bytes, std::optional<std::uint64_t> lines)
{
    constexpr std::uint8_t whole_stores = 15;
    const std::uint64_t offset = byte_offset(FilePage{location});
    std::uint8_t& whole_stores_left = whole_stores_left_[image_page];
    const std::lock_guard guard(medium_lock_);
    if (lines && !are_compared(*lines)) {
        store_lines(offset, bytes, *lines, Canary::line_write_back);
    } else if (!lines || whole_stores_left != 0) {
        whole_stores_left = static_cast<std::uint8_t>(whole_stores_left - (whole_stores_left != 0 ? 1 : 0));
        pool_.medium().store_nontemporal(offset, bytes, page_bytes);
    } else if (store_changed_lines(offset, bytes, Canary::line_write_back) >= nearly_all_lines) {
        whole_stores_left = whole_stores;
    }
}

/// Byte difference [PMThreads §3.1] at the granularity that the medium writes back.
int EpochWriter::store_changed_lines(std::uint64_t offset, const std::byte* bytes, Canary write_back)
{
    const std::byte* const old_bytes = pool_.medium().mapping() + offset;
    std::uint64_t changed = 0;
    for (std::uint64_t line = 0; line < lines_per_page; ++line) {
        const std::uint64_t at = line * cache_line_bytes;
        changed |= std::uint64_t{std::memcmp(old_bytes + at, bytes + at, cache_line_bytes) != 0} << line;
    }
    store_lines(offset, bytes, changed, write_back);
    return std::popcount(changed);
}

void EpochWriter::store_lines(std::uint64_t offset, const std::byte* bytes, std::uint64_t lines, Canary write_back)
{
    Medium& medium = pool_.medium();
    while (lines != 0) {
        const auto first = static_cast<unsigned>(std::countr_zero(lines));
        const auto count = static_cast<unsigned>(std::countr_one(lines >> first));
        const std::uint64_t at = first * cache_line_bytes;
        medium.store(offset + at, bytes + at, count * cache_line_bytes);
        if (!is_removed(write_back)) {
            medium.write_back(offset + at, count * cache_line_bytes);
        }
        lines = first + count == lines_per_page ? 0 : lines >> (first + count) << (first + count);
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
        if (i > first && batch_bytes + gathered[i].size > write_rules_.batch_bytes_max) {
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

/// Byte-addressable media. Of a table page that was written some epochs ago few lines differ.
void EpochWriter::store_table(std::uint64_t epoch) noexcept
{
    table_.take_changed_pages([&](std::uint64_t offset, std::uint64_t first_image_page) {
        write_rules_.between_pieces();
        table_.compose(first_image_page, epoch, table_pages_[0]);
        const auto* const bytes = reinterpret_cast<const std::byte*>(table_pages_.data());
        const std::lock_guard guard(medium_lock_);
        for (std::uint64_t copy = 0; copy < (is_removed(Canary::table_second_copy) ? 1 : table_copies); ++copy) {
            store_changed_lines(offset + copy * page_bytes, bytes, Canary::table_write_back);
        }
    });
}

Result<void> EpochWriter::write_table(std::uint64_t epoch)
{
    if (is_removed(Canary::table_write)) {
        return {};
    }
    if (pool_.medium().byte_addressable()) {
        store_table(epoch);
        return {};
    }
    Result<void> outcome;
    std::uint64_t composed = 0;
    table_.take_changed_pages([&](std::uint64_t offset, std::uint64_t first_image_page) {
        if (composed == table_pages_at_once || gathered_count_ + table_copies > gathered_max) {
            outcome = outcome ? flush_gathered() : outcome;
            composed = 0;
        }
        if (!outcome) {
            return;
        }
        write_rules_.between_pieces();
        TablePage& page = table_pages_[composed++];
        table_.compose(first_image_page, epoch, page);
        for (std::uint64_t copy = 0; copy < (is_removed(Canary::table_second_copy) ? 1 : table_copies); ++copy) {
            gathered_[gathered_count_++] = {offset + copy * page_bytes, reinterpret_cast<const std::byte*>(&page), page_bytes};
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
    // After the sync, so that nothing is acknowledged that a file cut off meanwhile has lost.
    return pool_.medium().check_intact();
}

Result<void> EpochWriter::write_commit_record(const EpochFacts& facts, std::uint64_t pages)
{
    CommitRecord record{};
    record.magic = commit_magic;
    record.pool_uuid = pool_.facts().uuid;
    record.epoch = facts.epoch;
    record.generation = pool_.facts().generation;
    record.table_digest = table_.digest() + (facts.log != nullptr ? facts.log->digest() : 0);
    record.image_pages = facts.image_pages;
    record.pages_in_epoch = pages;
    record.captured_unix_ns = facts.captured_unix_ns;
    record.flags = facts.clean ? commit_clean : 0u;
    const std::lock_guard guard(medium_lock_);
    return store_commit_record(pool_, record);
}

Result<void> EpochWriter::commit(const EpochFacts& facts)
{
    constexpr std::uint64_t pages_of_piece = 1024;
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
        older_location_[pending.image_page] = old.location;
        lines_between_[pending.image_page] = pending.lines;
        written_lately_.set(pending.image_page);
        table_.switch_copy(pending.image_page, {facts.epoch, pending.location, pending.checksum});
        if (++pages % pages_of_piece == 0) {
            write_rules_.between_pieces();
        }
    }
    if (auto done = write_table(facts.epoch); !done) {
        return done;
    }
    if (auto done = flush_gathered(); !done) {
        return done;
    }
    if (facts.log != nullptr) {
        for (const std::uint32_t page : facts.deltas.pages) {
            forget_content(page);  // No copy has these bytes.
            written_lately_.set(page);  // A whole copy follows before long.
        }
        if (auto done = write_rules_.await_room([&] { return facts.log->take_room(pool_.medium(), facts.deltas); }); !done) {
            return done;
        }
        if (auto done = facts.log->write(pool_.medium(), medium_lock_, facts.deltas, write_rules_.between_pieces); !done) {
            return done;
        }
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

void EpochWriter::release_run(std::uint64_t begin, std::uint64_t end) noexcept
{
    if (begin == end) {
        return;
    }
    const FilePageRange pages{begin, end};
    pool_.medium().release(pages.bytes());
    write_rules_.between_pieces();
    locations_.note_without_room(pages);
    std::fill(written_here_.data() + begin, written_here_.data() + end, 0u);
}

void EpochWriter::return_room(std::uint64_t now_ns) noexcept
{
    constexpr std::uint64_t between_walks_ns = 5'000'000'000;
    constexpr std::uint64_t pages_of_piece = 8192;
    if (!locations_.has_late_second_copies() || !pool_.medium().byte_addressable()) {
        return;
    }
    if (return_cursor_ >= table_.image_pages()) {
        if (now_ns - return_begun_ns_ < between_walks_ns) {
            return;
        }
        is_first_return_ = return_begun_ns_ == 0;
        return_begun_ns_ = now_ns;
        return_cursor_ = 0;
    }
    const std::uint64_t end = std::min(table_.image_pages(), return_cursor_ + pages_of_piece);
    for (std::size_t copy = 0; copy < data_pages_per_image_page; ++copy) {
        std::uint64_t run_begin = 0;
        std::uint64_t run_end = 0;
        for (std::uint64_t page = return_cursor_; page < end; ++page) {
            const std::uint32_t home = table_.home_locations(page)[copy];
            const bool may_have_room = is_first_return_ ? locations_.is_free(home) : locations_.is_free_and_has_room(home);
            const bool is_unused = may_have_room && !written_lately_.test(page) && table_.consistent(page).epoch != 0;
            if (!is_unused) {
                continue;
            }
            if (home != run_end) {
                release_run(run_begin, run_end);
                run_begin = home;
            }
            run_end = home + std::uint64_t{1};
        }
        release_run(run_begin, run_end);
    }
    for (std::uint64_t page = return_cursor_; page < end; ++page) {
        written_lately_.clear(page);
    }
    return_cursor_ = end;
}

}  // namespace stillpoint::versions
