#include "versions/version_table.hpp"

#include <algorithm>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "pool/commit_layout.hpp"

namespace stillpoint::versions {

namespace {

/// Weight of one consistent copy in the digest. A page without a copy weighs nothing.
std::uint64_t weight(std::uint64_t image_page, const VersionSlot& slot) noexcept
{
    if (slot.epoch == 0) {
        return 0;
    }
    const std::uint64_t where_and_what =
        (std::uint64_t{slot.location} << 32) | std::uint64_t{slot.checksum};
    return mix64(mix64(image_page, slot.epoch), where_and_what);
}

}  // namespace

std::uint64_t content_hash(const std::byte* page, std::uint64_t seed) noexcept
{
    return checksum64(page, page_bytes, seed);
}

std::uint32_t page_checksum(std::uint64_t content_hash, std::uint64_t image_page,
                            std::uint64_t epoch) noexcept
{
    const std::uint64_t sum = mix64(content_hash, image_page * 0x9e3779b97f4a7c15u + epoch);
    return static_cast<std::uint32_t>(sum ^ (sum >> 32));
}

Result<void> VersionTable::reserve(std::uint64_t image_pages_max, const Uuid& pool)
{
    hash_seed_ = checksum64(pool.data(), pool.size(), commit_magic);
    if (auto reserved = entries_.reserve(
            round_up(image_pages_max, entries_per_table_page) + entries_per_table_page,
            "the version table");
        !reserved) {
        return reserved;
    }
    return changed_.reserve(table_pages_for(image_pages_max) + 1, "the map of changed table pages");
}

bool VersionTable::is_data_page(std::uint64_t location) const noexcept
{
    for (std::size_t i = 0; i < segment_count_; ++i) {
        const Segment& segment = segments_[i];
        const std::uint64_t first = first_data_page(segment);
        if (location >= first &&
            location - first < data_pages_per_image_page * segment.image_pages) {
            return true;
        }
    }
    return false;
}

Result<void> VersionTable::load_segment(const Medium& medium, const Segment& segment)
{
    if (segment.first_image_page % entries_per_table_page != 0 ||
        segment.first_image_page != image_pages_ ||
        segment.file_pages < segment_file_pages(segment.image_pages)) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: segment at image page {} has a shape that no engine of page versions writes; "
                    "restore the pool from a copy",
                    medium.path(), segment.first_image_page);
    }
    auto* first = entries_.data() + segment.first_image_page;
    const std::uint64_t bytes = table_pages_for(segment.image_pages) * page_bytes;
    if (auto read = medium.read(byte_offset(FilePage{segment.first_file_page}),
                                {reinterpret_cast<std::byte*>(first), bytes});
        !read) {
        return read;
    }
    extend(segment);
    return {};
}

void VersionTable::extend(const Segment& segment) noexcept
{
    segments_[segment_count_++] = segment;
    image_pages_ = segment.first_image_page + segment.image_pages;
}

/// Of the older copy only the place is ever used: the next copy may be written there.
bool VersionTable::is_sound_older_slot(const VersionSlot& slot) const noexcept
{
    return slot.epoch == 0 ? slot.location == 0 && slot.checksum == 0 : is_data_page(slot.location);
}

/// Nothing needs the older copy of a page, so damage there costs nothing: the slot is emptied, and written with the next epoch.
void VersionTable::clear_damaged_older_slots(std::uint64_t page, Findings* findings)
{
    const unsigned in_force = consistent_index(page);
    auto& slots = entries_[page].slots;
    for (unsigned index = 0; index < slots.size(); ++index) {
        const bool needed = index == in_force && slots[index].epoch != 0;
        if (needed || is_sound_older_slot(slots[index])) {
            continue;
        }
        if (findings != nullptr) {
            findings->remark(fail(SP_E_POOL_CORRUPT, 0,
                                  "version table: the slot of the older copy of image page {} is damaged (epoch {}, location {}); "
                                  "nothing needs it, and the next run clears it",
                                  page, slots[index].epoch, slots[index].location)
                                 .value());
        }
        slots[index] = {};
        ++damaged_slots_cleared_;
        mark_changed(page);
    }
}

Result<void> VersionTable::clear_uncommitted(std::uint64_t durable_epoch, Findings* findings)
{
    for (std::uint64_t page = 0; page < image_pages_; ++page) {
        auto& slots = entries_[page].slots;
        for (VersionSlot& slot : slots) {
            if (slot.epoch > durable_epoch && !is_removed(Canary::unfinished_slots)) {
                slot = {};
                ++slots_cleared_;
                mark_changed(page);
            }
        }
        clear_damaged_older_slots(page, findings);
        const VersionSlot& copy = consistent(page);
        if (copy.epoch == 0) {
            continue;
        }
        if (slots[0].epoch == slots[1].epoch || !is_data_page(copy.location)) {
            if (auto told = found(findings, fail(SP_E_POOL_CORRUPT, 0,
                                                 "version table: the entry of image page {} is damaged (epochs {} and {}, "
                                                 "location {}); restore the pool from a copy",
                                                 page, slots[0].epoch, slots[1].epoch, copy.location));
                !told) {
                return told;
            }
            slots = {};
            continue;
        }
        digest_ += weight(page, copy);
        ++pages_present_;
    }
    return {};
}

Result<void> VersionTable::load(const Medium& medium, std::span<const Segment> segments,
                                std::uint64_t durable_epoch, Findings* findings)
{
    for (const Segment& segment : segments) {
        if (auto loaded = load_segment(medium, segment); !loaded) {
            return loaded;
        }
    }
    return clear_uncommitted(durable_epoch, findings);
}

void VersionTable::switch_copy(std::uint64_t image_page, const VersionSlot& slot) noexcept
{
    const unsigned consistent_now = consistent_index(image_page);
    auto& slots = entries_[image_page].slots;
    if (slots[consistent_now].epoch == 0) {
        ++pages_present_;
    }
    digest_ -= weight(image_page, slots[consistent_now]);
    digest_ += weight(image_page, slot);
    slots[1 - consistent_now] = slot;
    mark_changed(image_page);
}

void VersionTable::write_back(Medium& medium) const noexcept
{
    for (std::size_t i = 0; i < segment_count_ && !is_removed(Canary::recovered_table_durable); ++i) {
        const Segment& segment = segments_[i];
        medium.write_back(byte_offset(FilePage{segment.first_file_page}),
                          table_pages_for(segment.image_pages) * page_bytes);
    }
}

std::array<std::uint32_t, data_pages_per_image_page> VersionTable::home_locations(std::uint64_t image_page) const noexcept
{
    for (std::size_t i = 0; i < segment_count_; ++i) {
        const Segment& segment = segments_[i];
        if (image_page - segment.first_image_page < segment.image_pages) {
            const std::uint64_t first =
                first_data_page(segment) + image_page - segment.first_image_page;
            return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(first + segment.image_pages)};
        }
    }
    return {};  // Unreachable: callers hold pages of the image.
}

}  // namespace stillpoint::versions
