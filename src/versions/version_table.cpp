#include "versions/version_table.hpp"

#include <algorithm>
#include <cstring>

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
    const std::uint64_t where_and_what = (std::uint64_t{slot.location} << 32) | std::uint64_t{slot.checksum};
    return mix64(mix64(image_page, slot.epoch), where_and_what);
}

/// Table pages that are read at once.
constexpr std::uint64_t chunk_pages = 64;
constexpr std::uint64_t chunk_copies = chunk_pages * table_copies;

bool is_zero(const TablePage& page) noexcept
{
    static constexpr TablePage zero{};
    return page.epoch == 0 && std::memcmp(&page, &zero, sizeof zero) == 0;
}

}  // namespace

std::uint64_t content_hash(const std::byte* page, std::uint64_t seed) noexcept { return checksum64(page, page_bytes, seed); }

std::uint32_t page_checksum(std::uint64_t content_hash, std::uint64_t image_page, std::uint64_t epoch) noexcept
{
    const std::uint64_t sum = mix64(content_hash, image_page * 0x9e3779b97f4a7c15u + epoch);
    return static_cast<std::uint32_t>(sum ^ (sum >> 32));
}

std::uint64_t table_page_checksum(const TablePage& page, std::uint64_t first_image_page, std::uint64_t seed) noexcept
{
    constexpr std::size_t begin = offsetof(TablePage, epoch);
    return checksum64(reinterpret_cast<const std::byte*>(&page) + begin, sizeof page - begin, mix64(seed, first_image_page));
}

/// The state of one load.
struct VersionTable::Reading {
    std::uint64_t durable_epoch;
    Findings* findings;
    os::ReservedArray<TablePage> copies;  ///< of a chunk: those of one place, then those of the other
    std::array<std::array<bool, chunk_copies>, table_places> readable;
};

Result<void> VersionTable::reserve(std::uint64_t image_pages_max, const Uuid& pool)
{
    hash_seed_ = checksum64(pool.data(), pool.size(), commit_magic);
    if (auto reserved = slots_.reserve(image_pages_max, "the version table"); !reserved) {
        return reserved;
    }
    // Each segment may round its table up.
    const std::uint64_t table_pages_max = table_pages_for(image_pages_max) + Pool::segments_max;
    if (auto reserved = changed_.reserve(table_pages_max, "the map of changed table pages"); !reserved) {
        return reserved;
    }
    return second_in_force_.reserve(table_pages_max, "the map of table pages in force");
}

bool VersionTable::is_data_page(std::uint64_t location) const noexcept
{
    for (std::size_t i = 0; i < segment_count_; ++i) {
        const Segment& segment = segments_[i].segment;
        const std::uint64_t first = first_data_page(segment);
        if (location >= first && location - first < data_pages_per_image_page * segment.image_pages) {
            return true;
        }
    }
    return false;
}

const VersionTable::TableOfSegment* VersionTable::table_of(std::uint64_t image_page) const noexcept
{
    for (std::size_t i = 0; i < segment_count_; ++i) {
        const Segment& segment = segments_[i].segment;
        if (image_page - segment.first_image_page < segment.image_pages) {
            return &segments_[i];
        }
    }
    return nullptr;  // Unreachable: callers hold pages of the image.
}

void VersionTable::mark_changed(std::uint64_t image_page) noexcept
{
    if (const TableOfSegment* const table = table_of(image_page); table != nullptr) {
        changed_.set(table->first_table_page + (image_page - table->segment.first_image_page) / slots_per_table_page);
    }
}

Result<void> VersionTable::check_shape(const Medium& medium, const Segment& segment, std::uint64_t image_pages)
{
    if (segment.first_image_page != image_pages || segment.file_pages < segment_file_pages(segment.image_pages)) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: segment at image page {} has a shape that no engine of page versions writes; "
                    "restore the pool from a copy",
                    medium.path(), segment.first_image_page);
    }
    return {};
}

void VersionTable::extend(const Segment& segment) noexcept
{
    segments_[segment_count_++] = {segment, table_pages_};
    image_pages_ = segment.first_image_page + segment.image_pages;
    table_pages_ += table_pages_for(segment.image_pages);
}

/// Page by page where a read of all of them fails: a bad sector takes one copy only.
Result<void> VersionTable::read_copies(const Medium& medium, std::uint64_t first_file_page, std::uint64_t count, TablePage* copies,
                                       bool* readable)
{
    const auto read = [&](std::uint64_t first, std::uint64_t pages) {
        return medium.read(byte_offset(FilePage{first_file_page + first}),
                           {reinterpret_cast<std::byte*>(copies + first), static_cast<std::size_t>(pages * page_bytes)});
    };
    std::fill_n(readable, count, true);
    auto whole = read(0, count);
    if (whole || whole.error().code != SP_E_IO) {
        return whole;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        if (auto one = read(i, 1); !one) {
            if (one.error().code != SP_E_IO) {
                return one;
            }
            readable[i] = false;
            unreadable_ = one;
        }
    }
    return {};
}

void VersionTable::count_unfinished(const TablePage& page, std::uint64_t durable_epoch) noexcept
{
    slots_cleared_ += static_cast<std::uint64_t>(std::count_if(
        page.slots.begin(), page.slots.end(), [durable_epoch](const VersionSlot& slot) { return slot.epoch > durable_epoch; }));
}

/// Takes the newest of the four copies of a table page that counts. Marks the page as changed unless all four are as a commit leaves
/// them: two alike in force, two alike that are older.
Result<void> VersionTable::take_page(const TableOfSegment& table, std::uint64_t index, std::uint64_t in_chunk, Reading& reading)
{
    const std::uint64_t first_image_page = table.segment.first_image_page + index * slots_per_table_page;
    const TablePage* newest = nullptr;
    bool is_tidy = true;
    std::array<bool, table_places> is_damaged{};
    for (std::uint64_t place = 0; place < table_places; ++place) {
        const std::uint64_t first = in_chunk * table_copies;
        const TablePage* const copies = &reading.copies[place * chunk_copies + first];
        for (std::uint64_t copy = 0; copy < table_copies; ++copy) {
            const TablePage& page = copies[copy];
            const bool is_sound = reading.readable[place][first + copy] &&
                                  (is_zero(page) || is_removed(Canary::table_checksum) ||
                                   page.checksum == table_page_checksum(page, first_image_page, hash_seed_));
            if (!is_sound) {
                ++copies_damaged_;
                is_tidy = false;
                is_damaged[place] = true;
                continue;
            }
            is_tidy = is_tidy && page.epoch == copies[0].epoch;
            if (page.epoch > reading.durable_epoch && !is_removed(Canary::unfinished_slots)) {
                is_tidy = false;
                if (copy == 0) {
                    count_unfinished(page, reading.durable_epoch);
                }
                continue;
            }
            if (newest == nullptr || page.epoch > newest->epoch) {
                newest = &page;
                second_in_force_.assign(table.first_table_page + index, place == 1);
            }
        }
    }
    if (!is_tidy && !is_removed(Canary::table_written_again)) {
        changed_.set(table.first_table_page + index);
    }
    // In the other place it may be what a crash left of a write, and nothing needs it.
    const std::size_t in_force = second_in_force_.test(table.first_table_page + index) ? 1 : 0;
    if (is_damaged[in_force] && reading.findings != nullptr) {
        reading.findings->remark(fail(SP_E_POOL_CORRUPT, 0,
                                      "version table: one of the two copies of the table page of image pages from {} on is damaged; the "
                                      "other copy is used, and the next run writes the page again",
                                      first_image_page)
                                     .value());
    }
    const std::uint64_t left = table.segment.first_image_page + table.segment.image_pages - first_image_page;
    return newest == nullptr ? Result<void>{}
                             : take_slots(newest, first_image_page, std::min(left, slots_per_table_page), reading.findings);
}

/// The checksum held: what is wrong here was written so.
Result<void> VersionTable::take_slots(const TablePage* page, std::uint64_t first_image_page, std::uint64_t count, Findings* findings)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        const VersionSlot& slot = page->slots[i];
        const bool is_empty = slot.epoch == 0 && slot.location == 0 && slot.checksum == 0;
        const bool is_sound = is_empty || (slot.epoch != 0 && slot.epoch <= page->epoch && is_data_page(slot.location));
        if (!is_sound) {
            if (auto told = found(findings, fail(SP_E_POOL_CORRUPT, 0,
                                                 "version table: the slot of image page {} is damaged (epoch {}, location {}); restore the "
                                                 "pool from a copy",
                                                 first_image_page + i, slot.epoch, slot.location));
                !told) {
                return told;
            }
            continue;
        }
        slots_[first_image_page + i] = slot;
        digest_ += weight(first_image_page + i, slot);
        pages_present_ += is_empty ? 0 : 1;
    }
    return {};
}

Result<void> VersionTable::load_segment(const Medium& medium, const TableOfSegment& table, Reading& reading)
{
    const std::uint64_t count = table_pages_for(table.segment.image_pages);
    for (std::uint64_t index = 0; index < count; index += chunk_pages) {
        const std::uint64_t pages = std::min(chunk_pages, count - index);
        for (std::uint64_t place = 0; place < table_places; ++place) {
            if (auto read = read_copies(medium, table_file_page(table.segment, index, place), pages * table_copies,
                                        &reading.copies[place * chunk_copies], reading.readable[place].data());
                !read) {
                return read;
            }
        }
        for (std::uint64_t i = 0; i < pages; ++i) {
            if (auto taken = take_page(table, index + i, i, reading); !taken) {
                return taken;
            }
        }
    }
    return {};
}

Result<void> VersionTable::load(const Medium& medium, std::span<const Segment> segments, std::uint64_t durable_epoch, Findings* findings)
{
    Reading reading{durable_epoch, findings, {}, {}};
    if (auto reserved = reading.copies.reserve(table_places * chunk_copies, "reading the version table"); !reserved) {
        return reserved;
    }
    // All of them first: a copy may lie in any segment.
    for (const Segment& segment : segments) {
        if (auto sound = check_shape(medium, segment, image_pages_); !sound) {
            return sound;
        }
        extend(segment);
    }
    for (std::size_t i = 0; i < segment_count_; ++i) {
        if (auto loaded = load_segment(medium, segments_[i], reading); !loaded) {
            return loaded;
        }
    }
    return {};
}

void VersionTable::switch_copy(std::uint64_t image_page, const VersionSlot& slot) noexcept
{
    VersionSlot& here = slots_[image_page];
    if (here.epoch == 0) {
        ++pages_present_;
    }
    digest_ -= weight(image_page, here);
    digest_ += weight(image_page, slot);
    here = slot;
    mark_changed(image_page);
}

void VersionTable::compose(std::uint64_t first_image_page, std::uint64_t epoch, TablePage& page) const noexcept
{
    const TableOfSegment& table = *table_of(first_image_page);
    const std::uint64_t left = table.segment.first_image_page + table.segment.image_pages - first_image_page;
    const auto count = static_cast<std::size_t>(std::min(left, slots_per_table_page));
    std::copy_n(slots_.data() + first_image_page, count, page.slots.begin());
    std::fill(page.slots.begin() + static_cast<std::ptrdiff_t>(count), page.slots.end(), VersionSlot{});
    page.epoch = epoch;
    page.checksum = table_page_checksum(page, first_image_page, hash_seed_);
}

void VersionTable::write_back(Medium& medium) const noexcept
{
    for (std::size_t i = 0; i < segment_count_ && !is_removed(Canary::recovered_table_durable); ++i) {
        const Segment& segment = segments_[i].segment;
        medium.write_back(byte_offset(FilePage{segment.first_file_page}), table_file_pages(segment.image_pages) * page_bytes);
    }
}

std::array<std::uint32_t, data_pages_per_image_page> VersionTable::home_locations(std::uint64_t image_page) const noexcept
{
    const TableOfSegment* const table = table_of(image_page);
    if (table == nullptr) {
        return {};
    }
    const std::uint64_t first = first_data_page(table->segment) + image_page - table->segment.first_image_page;
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(first + table->segment.image_pages)};
}

}  // namespace stillpoint::versions
