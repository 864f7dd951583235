#include "versions/delta_log.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "arch/checksum.hpp"
#include "core/canary.hpp"

namespace stillpoint::versions {

namespace {

std::uint64_t head_checksum(const DeltaHead& head, std::uint64_t seed) noexcept
{
    constexpr std::size_t begin = offsetof(DeltaHead, epoch);
    return checksum64(reinterpret_cast<const std::byte*>(&head) + begin, sizeof head - begin, seed);
}

std::uint64_t index_checksum(const std::byte* index, const DeltaBatchHead& head, std::uint64_t seed) noexcept
{
    constexpr std::size_t begin = offsetof(DeltaBatchHead, epoch);
    return checksum64(index + begin, delta_index_bytes(head.groups, head.lines) - begin, seed);
}

/// The parts of an index, as delta_layout.hpp has them.
struct IndexParts {
    std::uint64_t* masks;
    std::uint32_t* pages;
    std::uint64_t* sums;
};
IndexParts parts_of(std::byte* index, std::uint64_t groups) noexcept
{
    auto* const masks = reinterpret_cast<std::uint64_t*>(index + sizeof(DeltaBatchHead));
    auto* const pages = reinterpret_cast<std::uint32_t*>(masks + groups);
    return {masks, pages, masks + groups + (groups + 1) / 2};
}

std::uint64_t weight(std::uint64_t epoch, std::uint64_t checksum) noexcept { return mix64(epoch, checksum); }

}  // namespace

Result<void> DeltaLog::reserve(std::uint64_t image_pages_max, std::uint64_t hash_seed)
{
    hash_seed_ = hash_seed;
    const std::uint64_t row_pages_max = image_pages_max + Pool::segments_max * delta_pages_min;
    if (auto done = newest_lines_.reserve(image_pages_max, "the pages in the delta log"); !done) {
        return done;
    }
    if (auto done = has_lines_.reserve(image_pages_max, "the pages in the delta log"); !done) {
        return done;
    }
    if (auto done = live_.reserve(row_pages_max, "the batches of the delta log"); !done) {
        return done;
    }
    if (auto done = index_.reserve(row_pages_max * page_bytes, "the index of a batch"); !done) {
        return done;
    }
    return head_page_.reserve(page_bytes, "the head of the delta log");
}

void DeltaLog::note_lines(std::uint64_t image_page, std::uint64_t epoch) noexcept
{
    newest_lines_[image_page] = epoch;
    if (!has_lines_.test(image_page)) {
        has_lines_.set(image_page);
        ++pages_with_lines_;
    }
}

std::uint64_t DeltaLog::seed_of(std::uint64_t epoch, std::uint64_t page) const noexcept { return mix64(mix64(hash_seed_, epoch), page); }

std::uint64_t DeltaLog::live_pages() const noexcept
{
    std::uint64_t pages = 0;
    for (std::uint64_t i = 0; i < live_count_; ++i) {
        pages += live(i).pages;
    }
    return pages;
}

// -- Recovery ----------------------------------------------------------------------------------------

/// The newest head of an epoch up to `durable_epoch`, if it is the one that the commit record relied on.
Result<bool> DeltaLog::find_head(const Medium& medium, std::uint64_t durable_epoch, std::uint64_t digest, DeltaHead& head)
{
    bool is_found = false;
    for (std::uint64_t place = 0; place < table_places; ++place) {
        for (std::uint64_t copy = 0; copy < table_copies; ++copy) {
            DeltaHead read{};
            const std::uint64_t offset = byte_offset(FilePage{row_.head_file_page(place) + copy});
            if (auto done = medium.read(offset, std::as_writable_bytes(std::span(&read, 1))); !done) {
                if (done.error().code != SP_E_IO) {
                    return pass_on(done.error());
                }
                continue;  // A bad sector takes one copy only.
            }
            const bool is_sound = read.epoch != 0 && read.checksum == head_checksum(read, hash_seed_);
            if (is_sound && read.epoch <= durable_epoch && (!is_found || read.epoch > head.epoch)) {
                head = read;
                place_in_force_ = place;
                is_found = true;
            }
        }
    }
    return is_found && head.batches != 0 && weight(head.epoch, head.checksum) == digest;
}

Result<DeltaLog::NewestHead> DeltaLog::newest_head(const Medium& medium, std::uint64_t durable_epoch) const
{
    static constexpr DeltaHead zero{};
    NewestHead found;
    std::uint64_t epoch = 0;
    for (std::uint64_t place = 0; place < table_places; ++place) {
        bool has_sound = false;
        for (std::uint64_t copy = 0; copy < table_copies; ++copy) {
            DeltaHead head{};
            const std::uint64_t offset = byte_offset(FilePage{row_.head_file_page(place) + copy});
            if (auto done = medium.read(offset, std::as_writable_bytes(std::span(&head, 1))); !done) {
                return pass_on(done.error());
            }
            const bool is_zero = std::memcmp(&head, &zero, sizeof head) == 0;
            const bool is_sound = is_zero || (head.epoch != 0 && head.checksum == head_checksum(head, hash_seed_));
            has_sound = has_sound || is_sound;
            if (is_sound && !is_zero && head.epoch <= durable_epoch && head.epoch > epoch) {
                epoch = head.epoch;
                found.weight = head.batches == 0 ? 0 : weight(head.epoch, head.checksum);
            }
        }
        found.is_certain = found.is_certain && has_sound;
    }
    return found;
}

Result<void> DeltaLog::take_batch(const Medium& medium, const VersionTable& table, DeltaReplay& replay, std::uint64_t page,
                                  std::uint64_t index_pages, std::uint64_t newer_epoch)
{
    const auto is_damaged = [&](std::string_view how) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the batch at page {} of the delta log {}; restore the pool from a copy", medium.path(), page,
                    how);
    };
    if (index_pages == 0 || index_pages > row_.page_count() || page > row_.page_count() - index_pages) {
        return is_damaged("lies outside of it");
    }
    if (auto read = row_.read(medium, page, index_pages, index_.data()); !read) {
        return read;
    }
    DeltaBatchHead head{};
    std::memcpy(&head, index_.data(), sizeof head);
    const bool has_shape = head.epoch != 0 && head.epoch < newer_epoch && head.page == page && head.groups != 0 &&
                           head.groups <= head.lines && delta_index_pages(head.groups, head.lines) == index_pages &&
                           delta_batch_pages(head.groups, head.lines) == head.pages && head.pages <= row_.page_count() - page;
    const std::uint64_t seed = seed_of(head.epoch, page);
    if (!has_shape || head.checksum != index_checksum(index_.data(), head, seed)) {
        return is_damaged("does not match its checksum");
    }
    const IndexParts parts = parts_of(index_.data(), head.groups);
    const auto batch = replay.add_batch({head.epoch, seed, page + index_pages, head.lines}, parts.sums);
    if (!batch) {
        return pass_on(batch.error());
    }
    // From the last group on: a page's list begins with what is added last.
    std::uint64_t line = head.lines;
    for (std::uint64_t i = head.groups; i-- != 0;) {
        const std::uint64_t image_page = parts.pages[i];
        const auto lines = static_cast<std::uint64_t>(std::popcount(parts.masks[i]));
        const bool is_page = image_page < table.image_pages() && (leaves_out_lines_of_no_page_ || table.consistent(image_page).epoch != 0);
        if (lines == 0 || lines > line || !is_page) {
            return is_damaged("has lines of no page");
        }
        line -= lines;
        if (table.consistent(image_page).epoch == 0) {
            continue;
        }
        if (head.epoch > table.consistent(image_page).epoch || is_removed(Canary::delta_superseded)) {
            replay.add_group(*batch, image_page, parts.masks[i], line);
            note_lines(image_page, std::max(newest_lines_[image_page], head.epoch));
        }
    }
    if (line != 0) {
        return is_damaged("has lines of no page");
    }
    first_live_ = (first_live_ + live_.capacity() - 1) % live_.capacity();
    ++live_count_;
    live(0) = {head.epoch, weight(head.epoch, head.checksum), static_cast<std::uint32_t>(page), head.pages,
               static_cast<std::uint32_t>(index_pages)};
    return {};
}

Result<bool> DeltaLog::load(const Medium& medium, const VersionTable& table, std::uint64_t durable_epoch, std::uint64_t digest,
                            DeltaReplay& replay)
{
    DeltaHead head{};
    const auto found_head = row_.has_segments() ? find_head(medium, durable_epoch, digest, head) : Result<bool>(false);
    if (!found_head || !*found_head) {
        return found_head;
    }
    if (auto done = replay.reserve(table.image_pages(), row_.page_count()); !done) {
        return pass_on(done.error());
    }
    replay.begin(medium, row_);
    std::uint64_t page = head.newest_page;
    std::uint64_t index_pages = head.newest_index_pages;
    std::uint64_t newer_epoch = head.newest_epoch + 1;
    std::uint64_t sum = 0;
    for (std::uint64_t left = head.batches; left != 0; --left) {
        whole_from_ = newer_epoch - 1;
        if (auto taken = take_batch(medium, table, replay, page, index_pages, newer_epoch); !taken) {
            return pass_on(taken.error());
        }
        DeltaBatchHead batch{};
        std::memcpy(&batch, index_.data(), sizeof batch);
        newer_epoch = batch.epoch;
        page = batch.previous_page;
        index_pages = batch.previous_index_pages;
        sum += live(0).weight;
    }
    if (sum != head.digest) {
        whole_from_ = durable_epoch;
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the delta log does not match the commit record of epoch {}; restore the pool from a copy",
                    medium.path(), durable_epoch);
    }
    head_digest_ = digest;
    index_.discard_from(0);
    return true;
}

// -- An epoch ----------------------------------------------------------------------------------------

/// A log costs memory, or blocks of the disk, where it was once used: no more of it is than a dozen batches or so need.
std::uint64_t DeltaLog::pages_in_use() const noexcept
{
    constexpr std::uint64_t batches = 16;
    constexpr std::uint64_t pages_at_least = 4 * mib / page_bytes;
    return std::min(row_.page_count(), std::max(pages_at_least, batches * recent_pages_));
}

DeltaLog::Place DeltaLog::largest_room() const noexcept
{
    const std::uint64_t row_end = pages_in_use();
    if (live_count_ == 0) {
        return {0, row_end};
    }
    const Live& oldest = live(0);
    const Live& newest = live(live_count_ - 1);
    const std::uint64_t end = std::uint64_t{newest.page} + newest.pages;
    if (newest.page < oldest.page) {
        return {end, oldest.page - end};
    }
    const Place after{end, row_end - std::min(row_end, end)};
    return after.pages >= oldest.page ? after : Place{0, oldest.page};
}

void DeltaLog::begin_epoch(std::uint64_t epoch) noexcept
{
    if (epoch_ == epoch) {
        return;
    }
    epoch_ = epoch;
    due_were_visited_ = false;
    if (round_begun_in_ == 0) {
        round_begun_in_ = epoch;  // The batches that recovery found are dead after the first round.
    }
    const Place room = largest_room();
    room_page_ = room.page;
    room_pages_ = room.pages;
    // A log without room gets no batches, and so would not be swept.
    const std::uint64_t in_use = pages_in_use();
    if (room_pages_ < in_use / 5) {
        pages_since_ += std::max<std::uint64_t>(1, in_use / 20);
    }
}

void DeltaLog::compose_index(const DeltaBatch& batch, const BetweenPieces& between_pieces, Live& made) noexcept
{
    const std::uint64_t groups = batch.pages.size();
    DeltaBatchHead head{};
    head.epoch = epoch_;
    if (live_count_ != 0) {
        const Live& newest = live(live_count_ - 1);
        head.previous_epoch = newest.epoch;
        head.previous_page = newest.page;
        head.previous_index_pages = newest.index_pages;
    }
    head.page = static_cast<std::uint32_t>(room_page_);
    head.pages = static_cast<std::uint32_t>(delta_batch_pages(groups, batch.line_count));
    head.groups = static_cast<std::uint32_t>(groups);
    head.lines = static_cast<std::uint32_t>(batch.line_count);
    std::byte* const index = index_.data();
    const std::uint64_t index_pages = delta_index_pages(groups, batch.line_count);
    const std::uint64_t seed = seed_of(epoch_, room_page_);
    const IndexParts parts = parts_of(index, groups);
    std::copy(batch.masks.begin(), batch.masks.end(), parts.masks);
    std::copy(batch.pages.begin(), batch.pages.end(), parts.pages);
    if (groups % 2 != 0) {
        parts.pages[groups] = 0;
    }
    const std::uint64_t bytes = batch.line_count * cache_line_bytes;
    for (std::uint64_t i = 0; i < delta_blocks_for(batch.line_count); ++i) {
        const std::uint64_t begin = i * delta_block_bytes;
        parts.sums[i] = checksum64(batch.lines + begin, std::min(delta_block_bytes, bytes - begin), seed + i);
        between_pieces();
    }
    const std::uint64_t used = delta_index_bytes(groups, batch.line_count);
    std::memset(index + used, 0, index_pages * page_bytes - used);
    std::memcpy(index, &head, sizeof head);
    head.checksum = index_checksum(index, head, seed);
    std::memcpy(index, &head, sizeof head);
    made = {epoch_, weight(epoch_, head.checksum), head.page, head.pages, static_cast<std::uint32_t>(index_pages)};
}

Result<void> DeltaLog::write_pages(Medium& medium, os::FutexLock& medium_lock, std::uint64_t first, std::uint64_t pages,
                                   const std::byte* bytes, const BetweenPieces& between_pieces)
{
    constexpr std::uint64_t piece_bytes = 64 * kib;
    Result<void> outcome;
    row_.visit_pieces(first, pages, [&](std::uint64_t file_page, std::uint64_t index, std::uint64_t count) {
        if (!outcome) {
            return;
        }
        const std::uint64_t offset = byte_offset(FilePage{file_page});
        const std::byte* const from = bytes + index * page_bytes;
        if (!medium.byte_addressable()) {
            const BlockWrite write{offset, from, count * page_bytes};
            const std::lock_guard guard(medium_lock);
            outcome = medium.write({&write, 1});
            return;
        }
        for (std::uint64_t at = 0; at < count * page_bytes; at += piece_bytes) {
            {
                const std::lock_guard guard(medium_lock);
                medium.store_nontemporal(offset + at, from + at, std::min(piece_bytes, count * page_bytes - at));
            }
            between_pieces();
        }
    });
    return outcome;
}

Result<void> DeltaLog::write_head(Medium& medium, os::FutexLock& medium_lock)
{
    DeltaHead head{};
    head.epoch = epoch_;
    head.batches = live_count_;
    if (live_count_ != 0) {
        const Live& newest = live(live_count_ - 1);
        head.newest_epoch = newest.epoch;
        head.newest_page = newest.page;
        head.newest_index_pages = newest.index_pages;
        for (std::uint64_t i = 0; i < live_count_; ++i) {
            head.digest += live(i).weight;
        }
    }
    head.checksum = head_checksum(head, hash_seed_);
    head_digest_ = live_count_ == 0 ? 0 : weight(head.epoch, head.checksum);
    head_must_be_written_ = false;
    place_in_force_ = is_removed(Canary::delta_places) ? 0 : 1 - place_in_force_;
    std::memcpy(head_page_.data(), &head, sizeof head);
    const std::uint64_t copies = is_removed(Canary::delta_second_head) ? 1 : table_copies;
    for (std::uint64_t copy = 0; copy < copies; ++copy) {
        const std::uint64_t offset = byte_offset(FilePage{row_.head_file_page(place_in_force_) + copy});
        const std::lock_guard guard(medium_lock);
        if (medium.byte_addressable()) {
            medium.store_nontemporal(offset, head_page_.data(), sizeof head);
            continue;
        }
        const BlockWrite write{offset, head_page_.data(), page_bytes};
        if (auto done = medium.write({&write, 1}); !done) {
            return done;
        }
    }
    return {};
}

Result<void> DeltaLog::take_room(Medium& medium, const DeltaBatch& batch)
{
    constexpr std::uint64_t pages_at_a_time = 256;
    const bool writes_head = !batch.pages.empty() || live_count_ != 0;
    if (!has_late_room_ || !writes_head) {
        return {};
    }
    if (!heads_have_room_) {
        const FilePageRange heads{row_.head_file_page(0), row_.head_file_page(0) + delta_head_pages};
        if (auto taken = medium.allocate(heads.bytes()); !taken) {
            return taken;
        }
        heads_have_room_ = true;
    }
    const std::uint64_t end = batch.pages.empty() ? 0 : room_page_ + delta_batch_pages(batch.pages.size(), batch.line_count);
    if (end <= room_end_) {
        return {};
    }
    const std::uint64_t room_end = std::min(round_up(end, pages_at_a_time), row_.page_count());
    Result<void> outcome;
    row_.visit_pieces(room_end_, room_end - room_end_, [&](std::uint64_t file_page, std::uint64_t, std::uint64_t count) {
        if (outcome) {
            outcome = medium.allocate(FilePageRange{file_page, file_page + count}.bytes());
        }
    });
    if (outcome) {
        room_end_ = room_end;
    }
    return outcome;
}

Result<void> DeltaLog::write(Medium& medium, os::FutexLock& medium_lock, const DeltaBatch& batch, const BetweenPieces& between_pieces)
{
    const std::uint64_t live_before = live_count_;
    while (live_count_ != 0 && live(0).epoch < dead_before_) {
        first_live_ = (first_live_ + 1) % live_.capacity();
        --live_count_;
    }
    bool is_changed = live_count_ != live_before || (head_must_be_written_ && live_count_ != 0);
    if (!batch.pages.empty()) {
        Live made{};
        compose_index(batch, between_pieces, made);
        if (!is_removed(Canary::delta_batch_write)) {
            if (auto done = write_pages(medium, medium_lock, made.page, made.index_pages, index_.data(), between_pieces); !done) {
                return done;
            }
            if (auto done = write_pages(medium, medium_lock, made.page + made.index_pages, made.pages - made.index_pages, batch.lines,
                                        between_pieces);
                !done) {
                return done;
            }
        }
        for (const std::uint32_t page : batch.pages) {
            note_lines(page, epoch_);
        }
        pages_since_ += made.pages;
        recent_pages_ = std::max<std::uint64_t>(made.pages, recent_pages_ - recent_pages_ / 16);
        ++live_count_;
        live(live_count_ - 1) = made;
        is_changed = true;
    }
    return is_changed ? write_head(medium, medium_lock) : Result<void>{};
}

}  // namespace stillpoint::versions
