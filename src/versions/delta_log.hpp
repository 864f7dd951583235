#pragma once
// DeltaLog: the lines of pages that changed little in an epoch, in place of new copies of those pages.
//
// A batch holds an epoch's lines. It is written before the epoch's commit record, with the copies of other pages, to delta pages that no
// live batch has; the commit record's digest holds for the live batches as for the version table. So the rule for what is durable is
// that of the copies [PMThreads §4.2, Algorithm 2]: a page's consistent state is its copy of the newest committed epoch, and over it the
// lines of later committed epochs.
//
// Batches die from the oldest on: a sweep over the image lets each checkpoint write some pages whole that have lines in the log, as many
// as keep the log from filling up. When it has come round, all batches are dead that were there when it began. What finds no room in the
// log is written as copies.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "core/result.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"
#include "versions/between_pieces.hpp"
#include "versions/delta_replay.hpp"
#include "versions/delta_row.hpp"
#include "versions/version_table.hpp"

namespace stillpoint::versions {

/// Lines of one epoch: group i is lines of image page pages[i], one for each bit of masks[i], lowest first. A page may have several
/// groups: later ones are laid over earlier ones. `lines` begins at a page boundary, and is readable up to one.
struct DeltaBatch {
    std::span<const std::uint32_t> pages;
    std::span<const std::uint64_t> masks;
    const std::byte* lines = nullptr;
    std::uint64_t line_count = 0;
};

/// Threads: the checkpoint thread; the medium's lock keeps a growing pool apart.
class DeltaLog {
public:
    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max, std::uint64_t hash_seed);
    /// The segment's part of the row is free.
    void add_segment(const Segment& segment) noexcept { row_.add_segment(segment); }

    /// The live batches, if `digest`, which is what the commit record of `durable_epoch` has beside the table's, says that there are some.
    /// False: it does not fit any head that can be read. Errors: pool_corrupt, io; no_memory.
    [[nodiscard]] Result<bool> load(const Medium& medium, const VersionTable& table, std::uint64_t durable_epoch, std::uint64_t digest,
                                    DeltaReplay& replay);

    // -- For a salvage.
    struct NewestHead {
        std::uint64_t weight = 0;  ///< what load() takes as its digest; 0: no batch is live
        bool is_certain = true;  ///< no head is damaged in both its copies: that one may have been newer
    };
    /// Errors: pool_truncated, io.
    [[nodiscard]] Result<NewestHead> newest_head(const Medium& medium, std::uint64_t durable_epoch) const;
    /// load() leaves out lines of pages that have no copy: their table page is lost.
    void leave_out_lines_of_no_page() noexcept { leaves_out_lines_of_no_page_ = true; }
    /// After load() has failed: pages whose copy is of this epoch or a later one have all their lines.
    [[nodiscard]] std::uint64_t whole_from() const noexcept { return whole_from_; }

    // -- An epoch, in this order. Room is what the epochs before have left free: a batch that this one lets die is in it from the next on.
    /// Nothing if the epoch has begun.
    void begin_epoch(std::uint64_t epoch) noexcept;
    /// Calls visit(image page) for each page that this epoch is to write whole, for the log's sake.
    template <class Visit>
    void visit_due(const VersionTable& table, Visit&& visit) noexcept;
    [[nodiscard]] bool has_room(std::uint64_t groups, std::uint64_t lines) const noexcept
    {
        return delta_batch_pages(groups, lines) <= room_pages_;
    }
    /// Parts of the log get room when they are first used: before load().
    void expect_late_room() noexcept { has_late_room_ = true; }
    /// Takes room for what write() is to write. Errors: no_space, io.
    [[nodiscard]] Result<void> take_room(Medium& medium, const DeltaBatch& batch);
    /// Hands the batch, and a head where it is another than before, to the medium. Pages of the batch have a copy. Errors: io, no_space.
    [[nodiscard]] Result<void> write(Medium& medium, os::FutexLock& medium_lock, const DeltaBatch& batch,
                                     const BetweenPieces& between_pieces);
    /// Beside VersionTable::digest(), in the epoch's commit record.
    [[nodiscard]] std::uint64_t digest() const noexcept { return head_digest_; }

    [[nodiscard]] std::uint64_t live_batches() const noexcept { return live_count_; }
    [[nodiscard]] std::uint64_t live_pages() const noexcept;
    [[nodiscard]] std::uint64_t row_pages() const noexcept { return row_.page_count(); }

private:
    struct Live {
        std::uint64_t epoch;
        std::uint64_t weight;  ///< in DeltaHead::digest
        std::uint32_t page;
        std::uint32_t pages;
        std::uint32_t index_pages;
    };
    struct Place {
        std::uint64_t page = 0;
        std::uint64_t pages = 0;
    };

    [[nodiscard]] Live& live(std::uint64_t index) noexcept { return live_[(first_live_ + index) % live_.capacity()]; }
    [[nodiscard]] const Live& live(std::uint64_t index) const noexcept { return live_[(first_live_ + index) % live_.capacity()]; }
    void note_lines(std::uint64_t image_page, std::uint64_t epoch) noexcept;
    /// The sweep has come round: what was live when it began is dead.
    void begin_round() noexcept
    {
        cursor_ = 0;
        dead_before_ = round_begun_in_;
        round_begun_in_ = epoch_;
        pages_at_begin_of_round_ = pages_with_lines_;
    }
    [[nodiscard]] std::uint64_t pages_in_use() const noexcept;
    [[nodiscard]] Place largest_room() const noexcept;
    [[nodiscard]] Result<bool> find_head(const Medium& medium, std::uint64_t durable_epoch, std::uint64_t digest, DeltaHead& head);
    [[nodiscard]] Result<void> take_batch(const Medium& medium, const VersionTable& table, DeltaReplay& replay, std::uint64_t page,
                                          std::uint64_t index_pages, std::uint64_t newer_epoch);
    [[nodiscard]] std::uint64_t seed_of(std::uint64_t epoch, std::uint64_t page) const noexcept;
    void compose_index(const DeltaBatch& batch, const BetweenPieces& between_pieces, Live& made) noexcept;
    [[nodiscard]] Result<void> write_pages(Medium& medium, os::FutexLock& medium_lock, std::uint64_t first, std::uint64_t pages,
                                           const std::byte* bytes, const BetweenPieces& between_pieces);
    [[nodiscard]] Result<void> write_head(Medium& medium, os::FutexLock& medium_lock);

    DeltaRow row_;
    std::uint64_t hash_seed_ = 0;
    os::ReservedArray<std::uint64_t> newest_lines_;  ///< by image page: the epoch of its newest batch
    os::ReservedBitmap has_lines_;  ///< by image page: it may have live lines
    std::uint64_t pages_with_lines_ = 0;  ///< bits of it
    std::uint64_t pages_at_begin_of_round_ = 0;
    os::ReservedArray<Live> live_;  ///< in a circle, the oldest first
    std::uint64_t first_live_ = 0;
    std::uint64_t live_count_ = 0;
    os::ReservedArray<std::byte> index_;
    os::ReservedArray<std::byte> head_page_;
    std::uint64_t head_digest_ = 0;
    std::uint64_t whole_from_ = 0;
    bool leaves_out_lines_of_no_page_ = false;
    bool has_late_room_ = false;
    bool heads_have_room_ = false;  ///< of a log that gets room late
    std::uint64_t room_end_ = 0;  ///< pages of its row before this one have it
    std::uint64_t place_in_force_ = 0;
    /// A head of an epoch that did not commit may lie in the other place: it must not come to life.
    bool head_must_be_written_ = true;

    std::uint64_t epoch_ = 0;
    std::uint64_t room_pages_ = 0;
    std::uint64_t room_page_ = 0;
    bool due_were_visited_ = false;
    // The sweep.
    std::uint64_t cursor_ = 0;  ///< the next image page
    std::uint64_t round_begun_in_ = 0;  ///< epoch
    std::uint64_t dead_before_ = 0;  ///< batches of earlier epochs are dead when this epoch has committed
    std::uint64_t pages_since_ = 0;  ///< of batches, since the last visit_due()
    std::uint64_t recent_pages_ = 0;  ///< of a large batch of late
};

template <class Visit>
void DeltaLog::visit_due(const VersionTable& table, Visit&& visit) noexcept
{
    if (due_were_visited_ || live_count_ == 0) {
        return;
    }
    due_were_visited_ = true;
    if (pages_with_lines_ == 0) {  // All were written whole.
        begin_round();
        dead_before_ = epoch_;
        return;
    }
    // A batch lives for two rounds at most, and leaves a fifth of the log for the next one.
    const std::uint64_t pages_of_round = std::max<std::uint64_t>(1, pages_in_use() * 2 / 5);
    const std::uint64_t count = std::max(pages_with_lines_, pages_at_begin_of_round_);
    std::uint64_t due = std::min(count, (pages_since_ * count + pages_of_round - 1) / pages_of_round);
    pages_since_ = 0;
    const std::uint64_t words = (table.image_pages() + 63) / 64;
    bool has_turned = false;
    while (due != 0) {
        const std::uint64_t word = has_lines_.word(cursor_ / 64) >> (cursor_ % 64);
        if (word == 0) {
            cursor_ = (cursor_ / 64 + 1) * 64;
        } else {
            cursor_ += static_cast<unsigned>(std::countr_zero(word));
            has_lines_.clear(cursor_);
            --pages_with_lines_;
            --due;
            if (newest_lines_[cursor_] > table.consistent(cursor_).epoch) {
                visit(cursor_);
            }
            ++cursor_;
        }
        if (cursor_ / 64 >= words) {
            if (std::exchange(has_turned, true)) {
                cursor_ = 0;
                break;
            }
            begin_round();
        }
    }
}

}  // namespace stillpoint::versions
