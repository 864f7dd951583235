#pragma once
// The version table: for each page of the image its two durable copies [PMThreads §4.2].
//
// The table in DRAM is the one that is worked on; its pages that changed are written with the
// data of each epoch. Slots of an epoch that did not commit are cleared when the table is
// loaded, and written back with the next epoch, before that epoch's commit record: otherwise an
// old slot would come to life when VER_d reaches its number. (The paper's algorithm reuses the
// number of an interrupted epoch; this is the hazard of doing so.)

#include <array>
#include <cstdint>
#include <span>

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
[[nodiscard]] std::uint32_t page_checksum(std::uint64_t content_hash, std::uint64_t image_page,
                                          std::uint64_t epoch) noexcept;

/// Threads: written by the checkpoint thread alone. Loader threads read slots of pages that are
/// not loaded yet; such pages are not dirty, so their slots do not change.
class VersionTable {
public:
    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max, const Uuid& pool);

    /// Of content hashes: the pool's own.
    [[nodiscard]] std::uint64_t hash_seed() const noexcept { return hash_seed_; }

    /// Reads the tables of `segments` and clears slots of epochs beyond `durable_epoch`.
    /// Every location is checked to lie in a segment's data pages. A slot that holds nothing needed, an older copy's, is emptied
    /// where it is damaged.
    /// Errors: pool_corrupt (with the page), pool_truncated, io.
    /// With `findings` a damaged entry counts as one without copies.
    [[nodiscard]] Result<void> load(const Medium& medium, std::span<const Segment> segments,
                                    std::uint64_t durable_epoch, Findings* findings = nullptr);

    /// A segment was appended: its pages have no copies.
    void extend(const Segment& segment) noexcept;

    /// Index of the consistent copy of `image_page`: the larger epoch.
    [[nodiscard]] unsigned consistent_index(std::uint64_t image_page) const noexcept
    {
        const auto& slots = entries_[image_page].slots;
        return slots[1].epoch > slots[0].epoch ? 1 : 0;
    }
    [[nodiscard]] const VersionSlot& consistent(std::uint64_t image_page) const noexcept
    {
        return entries_[image_page].slots[consistent_index(image_page)];
    }
    [[nodiscard]] const VersionSlot& working(std::uint64_t image_page) const noexcept
    {
        return entries_[image_page].slots[1 - consistent_index(image_page)];
    }

    /// Role switch of one page [Algorithm 2]: the working copy becomes `slot`. Takes effect for
    /// recovery when the commit record of slot.epoch is durable.
    void switch_copy(std::uint64_t image_page, const VersionSlot& slot) noexcept;

    /// Sum over all consistent copies: the commit record keeps it, so that a table page that was
    /// lost, stale or damaged does not pass for an older state.
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }

    [[nodiscard]] std::uint64_t slots_cleared() const noexcept { return slots_cleared_; }
    /// Slots of older copies that were damaged.
    [[nodiscard]] std::uint64_t damaged_slots_cleared() const noexcept { return damaged_slots_cleared_; }
    [[nodiscard]] std::uint64_t pages_present() const noexcept { return pages_present_; }

    /// The data pages that an image page has to itself on byte-addressable media. Neighbours in the image are neighbours in the
    /// file: what an epoch wrote is read in large pieces.
    [[nodiscard]] std::array<std::uint32_t, data_pages_per_image_page> home_locations(std::uint64_t image_page) const noexcept;
    [[nodiscard]] std::uint64_t image_pages() const noexcept { return image_pages_; }

    /// Byte-addressable media: starts the write back of the whole table, which a killed process may have
    /// stored to and not made durable. One line for each two pages of the image.
    void write_back(Medium& medium) const noexcept;

    /// Calls visit(file_offset, bytes, size) for each run of changed table pages, and forgets
    /// that they changed. Runs that lie up to `gap_pages_max` unchanged pages apart are joined.
    template <class Visit>
    void take_changed_pages(std::uint64_t gap_pages_max, Visit&& visit);

private:
    [[nodiscard]] Result<void> load_segment(const Medium& medium, const Segment& segment);
    [[nodiscard]] Result<void> clear_uncommitted(std::uint64_t durable_epoch, Findings* findings);
    [[nodiscard]] bool is_sound_older_slot(const VersionSlot& slot) const noexcept;
    void clear_damaged_older_slots(std::uint64_t page, Findings* findings);
    [[nodiscard]] bool is_data_page(std::uint64_t location) const noexcept;
    void mark_changed(std::uint64_t image_page) noexcept
    {
        changed_.set(image_page / entries_per_table_page);
    }

    os::ReservedArray<VersionEntry> entries_;
    os::ReservedBitmap changed_;  ///< a bit for each page of the table
    std::array<Segment, Pool::segments_max> segments_{};
    std::size_t segment_count_ = 0;
    std::uint64_t image_pages_ = 0;
    std::uint64_t hash_seed_ = 0;
    std::uint64_t digest_ = 0;
    std::uint64_t slots_cleared_ = 0;
    std::uint64_t damaged_slots_cleared_ = 0;
    std::uint64_t pages_present_ = 0;
};

template <class Visit>
void VersionTable::take_changed_pages(std::uint64_t gap_pages_max, Visit&& visit)
{
    for (std::size_t i = 0; i < segment_count_; ++i) {
        const Segment& segment = segments_[i];
        const std::uint64_t first = segment.first_image_page / entries_per_table_page;
        const std::uint64_t end = first + table_pages_for(segment.image_pages);
        std::uint64_t page = first;
        while (page < end) {
            if (!changed_.test(page)) {
                page = changed_.word(page / 64) >> (page % 64) == 0 ? (page / 64 + 1) * 64 : page + 1;
                continue;
            }
            std::uint64_t last = page;
            for (std::uint64_t next = page; next < end && next - last <= gap_pages_max + 1; ++next) {
                if (changed_.test(next)) {
                    changed_.clear(next);
                    last = next;
                }
            }
            visit(byte_offset(FilePage{segment.first_file_page + (page - first)}),
                  reinterpret_cast<const std::byte*>(entries_.data() + page * entries_per_table_page),
                  static_cast<std::size_t>((last - page + 1) * page_bytes));
            page = last + 1;
        }
    }
}

}  // namespace stillpoint::versions
