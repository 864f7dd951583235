#include "engines/breeze/journaled_image.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>

#include "arch/checksum.hpp"
#include "engines/breeze/breeze_layout.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t journal_seed = 0x425245454a4f5552;
constexpr std::uint64_t pages_due_bytes = 64 * mib;  ///< of the journal: then pages are written
constexpr std::uint64_t lines_of_page = page_bytes / cache_line_bytes;

struct Places {
    std::uint64_t image;
    std::uint64_t image_bytes;
    std::uint64_t journal;
    std::uint64_t journal_bytes;
};

Places places_of(const Pool& pool) noexcept
{
    const Segment& segment = pool.segments().front();
    const std::uint64_t begin = segment.first_file_page * page_bytes;
    const std::uint64_t image_bytes = segment.image_pages * page_bytes;
    return {begin, image_bytes, begin + image_bytes, (segment.file_pages - segment.image_pages) * page_bytes};
}

std::uint64_t checksum_of(const JournalRecord& record, std::uint64_t bytes) noexcept
{
    return checksum64(reinterpret_cast<const std::byte*>(&record) + sizeof record.checksum, bytes - sizeof record.checksum, journal_seed);
}

std::uint64_t bytes_of(std::uint64_t lines) noexcept { return sizeof(JournalRecord) + lines * sizeof(JournalLine); }

/// Writes pages of a copy of the image, runs of neighbours as one. `pages` is sorted. Errors: io, no_space.
Result<void> write_runs(Medium& medium, std::uint64_t image_offset, const std::byte* copy, std::span<const std::uint64_t> pages)
{
    std::array<BlockWrite, 64> batch;
    std::size_t count = 0;
    for (std::size_t i = 0; i < pages.size();) {
        std::size_t end = i + 1;
        while (end < pages.size() && pages[end] == pages[end - 1] + 1) {
            ++end;
        }
        batch[count++] = {image_offset + pages[i] * page_bytes, copy + pages[i] * page_bytes, (end - i) * page_bytes};
        i = end;
        if (count == batch.size() || i == pages.size()) {
            if (auto written = medium.write({batch.data(), count}); !written) {
                return written;
            }
            count = 0;
        }
    }
    return medium.sync();
}

}  // namespace

Result<void> JournaledImage::replay(const Pool& pool)
{
    const Places places = places_of(pool);
    Medium& medium = pool.medium();
    os::ReservedArray<std::byte> image;
    os::ReservedArray<std::byte> record_bytes;
    os::ReservedBitmap read_pages;
    ReservedList<std::uint64_t> pages;
    if (!image.reserve(places.image_bytes, "a journal") || !record_bytes.reserve(places.journal_bytes, "a journal") ||
        !read_pages.reserve(places.image_bytes / page_bytes, "a journal") || !pages.reserve(places.image_bytes / page_bytes, "a journal")) {
        return fail(SP_E_NO_MEMORY, 0, "{}: no address space to replay the journal", medium.path());
    }
    const auto& record = *reinterpret_cast<const JournalRecord*>(record_bytes.data());
    const auto* const lines = reinterpret_cast<const JournalLine*>(record_bytes.data() + sizeof record);
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
    for (std::uint64_t place = 0; places.journal_bytes - place >= page_bytes;) {
        if (auto read = medium.read(places.journal + place, {record_bytes.data(), page_bytes}); !read) {
            return read;
        }
        const std::uint64_t lines_max = (places.journal_bytes - place - sizeof record) / sizeof(JournalLine);
        const bool follows = place == 0 ? record.sequence != 0 : record.epoch == epoch && record.sequence == sequence + 1;
        if (!follows || record.lines == 0 || record.lines > lines_max) {
            break;
        }
        const std::uint64_t bytes = round_up(bytes_of(record.lines), page_bytes);
        if (auto read = medium.read(places.journal + place, {record_bytes.data(), bytes}); !read) {
            return read;
        }
        if (checksum_of(record, bytes_of(record.lines)) != record.checksum) {
            break;  // A record that was being written.
        }
        for (std::uint64_t i = 0; i < record.lines; ++i) {
            const std::uint64_t page = lines[i].number / lines_of_page;
            if (page >= places.image_bytes / page_bytes) {
                return fail(SP_E_POOL_CORRUPT, 0, "{}: the journal has a line outside of the image", medium.path());
            }
            if (!read_pages.test(page)) {
                if (auto read = medium.read(places.image + page * page_bytes, {image.data() + page * page_bytes, page_bytes}); !read) {
                    return read;
                }
                read_pages.set(page);
                pages.push_back(page);
            }
            std::memcpy(image.data() + lines[i].number * cache_line_bytes, lines[i].bytes, cache_line_bytes);
        }
        epoch = record.epoch;
        sequence = record.sequence;
        place += bytes;
    }
    std::ranges::sort(pages);
    return pages.empty() ? Result<void>{} : write_runs(medium, places.image, image.data(), pages.view());
}

Result<void> JournaledImage::load(const Pool& pool, std::byte* image)
{
    const Places places = places_of(pool);
    medium_ = &pool.medium();
    image_ = image;
    image_bytes_ = places.image_bytes;
    image_file_offset_ = places.image;
    journal_file_offset_ = places.journal;
    journal_bytes_ = places.journal_bytes;
    const std::uint64_t pages = image_bytes_ / page_bytes;
    if (!noted_.reserve(image_bytes_ / cache_line_bytes, "written lines") ||
        !lines_.reserve(image_bytes_ / cache_line_bytes, "written lines") || !stable_.reserve(image_bytes_, "a copy of the image") ||
        !staging_.reserve(journal_bytes_, "a record of the journal") || !dirty_.reserve(pages, "written pages") ||
        !dirty_pages_.reserve(pages, "written pages")) {
        return fail(SP_E_NO_MEMORY, 0, "{}: no address space for the copies of {} MiB", medium_->path(), image_bytes_ / mib);
    }
    constexpr std::uint64_t at_once = mib;
    const auto zeroes = std::make_unique<std::byte[]>(page_bytes);
    for (std::uint64_t offset = 0; offset < image_bytes_; offset += at_once) {
        const std::uint64_t bytes = std::min(at_once, image_bytes_ - offset);
        if (auto read = medium_->read(image_file_offset_ + offset, {staging_.data(), bytes}); !read) {
            return read;
        }
        for (std::uint64_t page = 0; page < bytes; page += page_bytes) {  // Pages of zeroes take no memory.
            if (std::memcmp(staging_.data() + page, zeroes.get(), page_bytes) != 0) {
                std::memcpy(image_ + offset + page, staging_.data() + page, page_bytes);
                std::memcpy(stable_.data() + offset + page, staging_.data() + page, page_bytes);
            }
        }
    }
    // A new first record must not be taken for a later one of the journal that is there.
    JournalRecord last{};
    if (auto read = medium_->read(journal_file_offset_, std::as_writable_bytes(std::span(&last, 1))); !read) {
        return read;
    }
    epoch_ = last.epoch + 1;
    return {};
}

void JournaledImage::note(std::span<const std::uintptr_t> line_addresses) noexcept
{
    const std::lock_guard hold(notes_lock_);
    ++notes_;
    for (const std::uintptr_t address : line_addresses) {
        const std::uint64_t line = (address - reinterpret_cast<std::uintptr_t>(image_)) / cache_line_bytes;
        if (!noted_.test(line)) {
            noted_.set(line);
            lines_.push_back(line);
        }
    }
}

std::uint64_t JournaledImage::capture() noexcept
{
    auto& record = *reinterpret_cast<JournalRecord*>(staging_.data());
    auto* const lines = reinterpret_cast<JournalLine*>(staging_.data() + sizeof record);
    std::uint64_t count = 0;
    // The lock is held while lines are copied: a store that comes after its undo entry was noted is in no copy that lacks the entry.
    const std::lock_guard hold(notes_lock_);
    notes_captured_ = notes_;
    for (const std::uint64_t noted_line : lines_) {
        const std::uint64_t page = noted_line / lines_of_page;
        const bool is_first = !dirty_.test(page);
        if (is_first) {
            dirty_.set(page);
            dirty_pages_.push_back(page);
        }
        const std::uint64_t begin = is_first ? page * lines_of_page : noted_line;
        for (std::uint64_t line = begin; line < begin + (is_first ? lines_of_page : 1); ++line) {
            std::byte* const stable = stable_.data() + line * cache_line_bytes;
            if (noted_.test(line)) {
                noted_.clear(line);
                std::memcpy(stable, image_ + line * cache_line_bytes, cache_line_bytes);
            } else if (!is_first) {
                continue;  // The line came with its page.
            }
            lines[count].number = line;
            std::memcpy(lines[count++].bytes, stable, cache_line_bytes);
        }
    }
    lines_.clear();
    record = {.checksum = 0, .epoch = epoch_, .sequence = sequence_ + 1, .lines = count, .reserved = {}};
    return bytes_of(count);
}

Result<void> JournaledImage::make_room() noexcept
{
    std::uint64_t lines = 0;
    {
        const std::lock_guard hold(notes_lock_);
        lines = lines_.size();
    }
    // More may be noted before they are captured: twice as many are counted on, each with its page.
    const std::uint64_t pages = std::min(2 * lines + lines_of_page, image_bytes_ / page_bytes);
    const bool is_due = journal_used_ > pages_due_bytes || bytes_of(pages * lines_of_page) + page_bytes > journal_bytes_ - journal_used_;
    return is_due && journal_used_ != 0 ? write_pages() : Result<void>{};
}

Result<void> JournaledImage::write_record(std::uint64_t bytes) noexcept
{
    auto& record = *reinterpret_cast<JournalRecord*>(staging_.data());
    const std::uint64_t padded = round_up(bytes, page_bytes);
    if (padded > journal_bytes_ - journal_used_) {
        return fail(SP_E_NO_SPACE, 0, "{}: the journal has no room for {} bytes", medium_->path(), padded);
    }
    std::memset(staging_.data() + bytes, 0, padded - bytes);
    record.checksum = checksum_of(record, bytes);
    const BlockWrite write{journal_file_offset_ + journal_used_, staging_.data(), padded};
    if (auto written = medium_->write({&write, 1}); !written) {
        return written;
    }
    if (auto synced = medium_->sync(); !synced) {
        return synced;
    }
    journal_used_ += padded;
    sequence_ = record.sequence;
    return {};
}

Result<void> JournaledImage::write_pages() noexcept
{
    std::ranges::sort(dirty_pages_);
    if (auto written = write_runs(*medium_, image_file_offset_, stable_.data(), dirty_pages_.view()); !written) {
        return written;
    }
    for (const std::uint64_t page : dirty_pages_) {
        dirty_.clear(page);
    }
    dirty_pages_.clear();
    journal_used_ = 0;
    ++epoch_;
    return {};
}

Result<void> JournaledImage::commit() noexcept
{
    if (failed_) {
        return pass_on(failure_);
    }
    auto written = make_room();
    if (written) {
        const std::uint64_t bytes = capture();
        written = bytes == bytes_of(0) ? Result<void>{} : write_record(bytes);
    }
    if (!written) {
        failed_ = true;
        failure_ = written.error();
        return written;
    }
    notes_durable_ = notes_captured_;
    return medium_->check_intact();
}

Result<void> JournaledImage::make_durable() noexcept
{
    std::uint64_t wanted = 0;
    {
        const std::lock_guard hold(notes_lock_);
        wanted = notes_;
    }
    const std::lock_guard hold(commit_lock_);
    if (notes_durable_ >= wanted) {
        return {};  // By another thread's record.
    }
    return commit();
}

Result<void> JournaledImage::close() noexcept
{
    const std::lock_guard hold(commit_lock_);
    if (auto committed = commit(); !committed) {
        return committed;
    }
    return dirty_pages_.empty() ? Result<void>{} : write_pages();
}

}  // namespace stillpoint::breeze
