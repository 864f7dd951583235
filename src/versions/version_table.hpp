#pragma once
// The version table: for each page of the image its consistent copy [PMThreads §4.2].
//
// The table in DRAM is the one that is worked on; its pages that changed are written with the data of each epoch, each to the place
// that is not in force, twice. So what a crash or a bad sector takes is never the only copy of what a committed epoch needs.
//
// Where recovery finds a table page of an epoch that did not commit, or a damaged one, the page is written again with the next
// epoch, before that epoch's commit record: otherwise the old page would come to life when VER_d reaches its number. (The paper's
// algorithm reuses the number of an interrupted epoch; this is the hazard of doing so.)

#include <array>
#include <cstdint>
#include <span>

#include "core/canary.hpp"
#include "core/findings.hpp"
#include "core/result.hpp"
#include "core/units.hpp"
#include "versions/page_layout.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"

namespace stillpoint::versions {

/// Hash of the 4096 bytes of a page; `seed` is VersionTable::hash_seed().
[[nodiscard]] std::uint64_t content_hash(const std::byte* page, std::uint64_t seed) noexcept;
/// Checksum of a page copy: its content hash, bound to its image page and epoch.
[[nodiscard]] std::uint32_t page_checksum(std::uint64_t content_hash, std::uint64_t image_page, std::uint64_t epoch) noexcept;
/// TablePage::checksum of the page whose first slot is that of `first_image_page`.
[[nodiscard]] std::uint64_t table_page_checksum(const TablePage& page, std::uint64_t first_image_page, std::uint64_t seed) noexcept;

/// Threads: written by the checkpoint thread alone. Loader threads read slots of pages that are
/// not loaded yet; such pages are not dirty, so their slots do not change.
class VersionTable {
public:
    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max, const Uuid& pool);

    /// The pool's own seed of content hashes.
    [[nodiscard]] std::uint64_t hash_seed() const noexcept { return hash_seed_; }

    /// Reads the tables of `segments`: of each table page the newest copy of an epoch up to `durable_epoch`. One that is damaged or
    /// cannot be read is passed over; whether what is left is the newest, digest() tells. Each slot's location is a data page.
    /// Errors: pool_corrupt (with the page), pool_truncated.
    /// With `findings` a damaged slot counts as empty.
    [[nodiscard]] Result<void> load(const Medium& medium, std::span<const Segment> segments, std::uint64_t durable_epoch,
                                    Findings* findings = nullptr);

    /// A segment was appended: its pages have no copies.
    void extend(const Segment& segment) noexcept;

    /// Epoch 0: the page has no copy.
    [[nodiscard]] const VersionSlot& consistent(std::uint64_t image_page) const noexcept { return slots_[image_page]; }

    /// Role switch of one page [Algorithm 2]: `slot` becomes the consistent copy. Takes effect for
    /// recovery when the commit record of slot.epoch is durable.
    void switch_copy(std::uint64_t image_page, const VersionSlot& slot) noexcept;

    /// Sum over all consistent copies: the commit record keeps it, so that a table page that was
    /// lost, stale or damaged does not pass for an older state.
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }

    /// Page copies of an epoch that did not commit.
    [[nodiscard]] std::uint64_t slots_cleared() const noexcept { return slots_cleared_; }
    [[nodiscard]] std::uint64_t pages_present() const noexcept { return pages_present_; }
    /// Copies of table pages that were damaged, or could not be read: a crash leaves some, and so does a bad sector.
    [[nodiscard]] std::uint64_t copies_damaged() const noexcept { return copies_damaged_; }
    /// Why a copy could not be read, if one could not.
    [[nodiscard]] const Result<void>& unreadable() const noexcept { return unreadable_; }

    /// The data pages that an image page has to itself on byte-addressable media. Neighbours in the image are neighbours in the
    /// file: what an epoch wrote is read in large pieces.
    [[nodiscard]] std::array<std::uint32_t, data_pages_per_image_page> home_locations(std::uint64_t image_page) const noexcept;
    [[nodiscard]] std::uint64_t image_pages() const noexcept { return image_pages_; }

    /// Byte-addressable media: starts the write back of the whole table, which a killed process may have
    /// stored to and not made durable. One line for each page of the image.
    void write_back(Medium& medium) const noexcept;

    /// Calls visit(file_offset, first_image_page) for each table page that changed, with the place of the first of its two copies,
    /// where `compose` is to be written; from then on that place is the one in force, and the page has not changed.
    template <class Visit>
    void take_changed_pages(Visit&& visit);
    /// The bytes of the table page whose first slot is that of `first_image_page`, as written by `epoch`.
    void compose(std::uint64_t first_image_page, std::uint64_t epoch, TablePage& page) const noexcept;

private:
    /// A segment, and the number of its first table page among those of all segments.
    struct TableOfSegment {
        Segment segment;
        std::uint64_t first_table_page;
    };
    struct Reading;

    [[nodiscard]] static Result<void> check_shape(const Medium& medium, const Segment& segment, std::uint64_t image_pages);
    [[nodiscard]] Result<void> load_segment(const Medium& medium, const TableOfSegment& table, Reading& reading);
    [[nodiscard]] Result<void> read_copies(const Medium& medium, std::uint64_t first_file_page, std::uint64_t count, TablePage* copies,
                                           bool* readable);
    [[nodiscard]] Result<void> take_page(const TableOfSegment& table, std::uint64_t index, std::uint64_t in_chunk, Reading& reading);
    [[nodiscard]] Result<void> take_slots(const TablePage* page, std::uint64_t first_image_page, std::uint64_t count, Findings* findings);
    void count_unfinished(const TablePage& page, std::uint64_t durable_epoch) noexcept;
    [[nodiscard]] bool is_data_page(std::uint64_t location) const noexcept;
    [[nodiscard]] const TableOfSegment* table_of(std::uint64_t image_page) const noexcept;
    void mark_changed(std::uint64_t image_page) noexcept;

    os::ReservedArray<VersionSlot> slots_;  ///< by image page
    os::ReservedBitmap changed_;            ///< a bit for each page of the table
    os::ReservedBitmap second_in_force_;    ///< likewise: which of the two places
    std::array<TableOfSegment, Pool::segments_max> segments_{};
    std::size_t segment_count_ = 0;
    std::uint64_t image_pages_ = 0;
    std::uint64_t table_pages_ = 0;
    std::uint64_t hash_seed_ = 0;
    std::uint64_t digest_ = 0;
    std::uint64_t slots_cleared_ = 0;
    std::uint64_t pages_present_ = 0;
    std::uint64_t copies_damaged_ = 0;
    Result<void> unreadable_;
};

template <class Visit>
void VersionTable::take_changed_pages(Visit&& visit)
{
    for (std::size_t i = 0; i < segment_count_; ++i) {
        const auto& [segment, first] = segments_[i];
        const std::uint64_t end = first + table_pages_for(segment.image_pages);
        std::uint64_t page = first;
        while (page < end) {
            if (!changed_.test(page)) {
                page = changed_.word(page / 64) >> (page % 64) == 0 ? (page / 64 + 1) * 64 : page + 1;
                continue;
            }
            const std::uint64_t place = second_in_force_.test(page) || is_removed(Canary::table_places) ? 0 : 1;
            changed_.clear(page);
            second_in_force_.assign(page, place == 1);
            visit(byte_offset(FilePage{table_file_page(segment, page - first, place)}),
                  segment.first_image_page + (page - first) * slots_per_table_page);
            ++page;
        }
    }
}

}  // namespace stillpoint::versions
