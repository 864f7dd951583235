#include "engines/breeze/journaled_image.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include "core/canary.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t noted_lines_kept = mib;  ///< memory for more is given back after a capture

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
    return {};
}

bool is_zero(const std::byte* page) noexcept { return page[0] == std::byte{0} && std::memcmp(page, page + 1, page_bytes - 1) == 0; }

}  // namespace

Result<void> JournaledImage::read(Pool& pool, std::uint64_t round_bytes)
{
    const Segment& segment = pool.segments().front();
    medium_ = &pool.medium();
    image_bytes_ = segment.image_pages * page_bytes;
    image_file_offset_ = segment.first_file_page * page_bytes;
    const std::uint64_t lines = image_bytes_ / cache_line_bytes;
    const std::uint64_t pages = segment.image_pages;
    if (lines > UINT32_MAX) {
        return fail(SP_E_UNSUPPORTED, 0, "{}: a pool on a file has at most {} GiB", medium_->path(),
                    (std::uint64_t{UINT32_MAX} + 1) * cache_line_bytes / gib);
    }
    constexpr std::uint64_t at_once = mib;
    os::ReservedArray<std::byte> buffer;
    if (!place_of_line_.reserve(lines, "written lines") || !noted_.reserve(lines, "written lines") ||
        !stable_.reserve(image_bytes_, "a copy of the image") || !dirty_.reserve(pages, "written pages") ||
        !fresh_.reserve(pages, "written pages") || !loaded_.reserve(pages, "pages that are read") ||
        !dirty_pages_.reserve(pages, "written pages") || !recovered_pages_.reserve(pages, "the pages of the journal") ||
        !buffer.reserve(at_once, "pages that are read")) {
        return fail(SP_E_NO_MEMORY, 0, "{}: no address space for the copies of {} MiB", medium_->path(), image_bytes_ / mib);
    }
    for (std::uint64_t offset = 0; offset < image_bytes_; offset += at_once) {
        const std::uint64_t bytes = std::min(at_once, image_bytes_ - offset);
        if (auto read = medium_->read(image_file_offset_ + offset, {buffer.data(), bytes}); !read) {
            return read;
        }
        for (std::uint64_t page = 0; page < bytes; page += page_bytes) {
            if (!is_zero(buffer.data() + page)) {  // Pages of zeroes take no memory.
                std::memcpy(stable_.data() + offset + page, buffer.data() + page, page_bytes);
                loaded_.set((offset + page) / page_bytes);
            }
        }
    }
    if (auto replayed = journal_.replay(pool, stable_.data(), recovered_pages_, round_bytes); !replayed) {
        return replayed;
    }
    for (const std::uint64_t page : recovered_pages_) {
        loaded_.set(page);
    }
    return {};
}

void JournaledImage::place_at(std::byte* image) noexcept
{
    image_ = image;
    for (std::uint64_t page = 0; page < image_bytes_ / page_bytes; ++page) {
        if (loaded_.test(page)) {
            std::memcpy(image_ + page * page_bytes, stable_.data() + page * page_bytes, page_bytes);
        }
    }
    // The next epoch begins with these pages. A line that is noted without a word brings its page.
    for (const std::uint64_t page : recovered_pages_) {
        if (!is_removed(Canary::journal_recovered_pages)) {
            static_cast<void>(noted_line(page * lines_of_page));
        }
    }
    recovered_pages_.clear();
}

JournaledImage::NotedLine& JournaledImage::noted_line(std::uint64_t number) noexcept
{
    std::uint32_t& place = place_of_line_[number];
    if (place >= noted_.size() || noted_[place].number != number) {  // An index of an older capture.
        place = static_cast<std::uint32_t>(noted_.size());
        noted_.push_back({number, 0, {}});
    }
    return noted_[place];
}

void JournaledImage::note(std::span<const StoredWords> stored) noexcept
{
    const std::lock_guard hold(notes_lock_);
    ++notes_;
    for (const StoredWords& one : stored) {
        auto* const words = reinterpret_cast<std::uint64_t*>(one.line);
        NotedLine& noted = noted_line((one.line - reinterpret_cast<std::uintptr_t>(image_)) / cache_line_bytes);
        noted.words |= one.words;
        for (std::size_t i = 0; i < words_of_line; ++i) {
            if ((one.words >> i & 1) != 0) {
                noted.values[i] = std::atomic_ref(words[i]).load(std::memory_order_relaxed);
            }
        }
    }
}

std::optional<Journal::Entries> JournaledImage::capture() noexcept
{
    const std::lock_guard hold(notes_lock_);
    const std::uint64_t first_fresh = dirty_pages_.size();
    Journal::Entries entries;
    for (const NotedLine& line : noted_) {
        const std::uint64_t page = line.number / lines_of_page;
        if (!dirty_.test(page) && !is_removed(Canary::journal_whole_pages)) {
            fresh_.set(page);
        }
        if (!dirty_.test(page)) {
            dirty_.set(page);
            dirty_pages_.push_back(page);
        }
        entries.lines += fresh_.test(page) ? 0u : 1u;
    }
    entries.pages = is_removed(Canary::journal_whole_pages) ? 0 : dirty_pages_.size() - first_fresh;
    if (!journal_.has_room(entries)) {
        forget_fresh_pages(first_fresh);
        for (std::uint64_t i = first_fresh; i < dirty_pages_.size(); ++i) {
            dirty_.clear(dirty_pages_[i]);
        }
        dirty_pages_.shorten_to(first_fresh);
        return std::nullopt;
    }
    for (const NotedLine& line : noted_) {
        std::byte* const stable = stable_.data() + line.number * cache_line_bytes;
        for (std::size_t i = 0; i < words_of_line; ++i) {
            if ((line.words >> i & 1) != 0) {
                std::memcpy(stable + i * sizeof line.values[i], &line.values[i], sizeof line.values[i]);
            }
        }
    }
    JournalPage* page_entry = journal_.pages();
    for (std::uint64_t i = first_fresh; i < first_fresh + entries.pages; ++i, ++page_entry) {
        page_entry->number = dirty_pages_[i];
        std::memcpy(page_entry->bytes, stable_.data() + dirty_pages_[i] * page_bytes, page_bytes);
    }
    auto* line_entry = reinterpret_cast<JournalLine*>(page_entry);
    for (const NotedLine& line : noted_) {
        if (!fresh_.test(line.number / lines_of_page)) {
            line_entry->number = line.number;
            std::memcpy(line_entry->bytes, stable_.data() + line.number * cache_line_bytes, cache_line_bytes);
            ++line_entry;
        }
    }
    forget_fresh_pages(first_fresh);
    if (noted_.size() > noted_lines_kept) {
        noted_.discard_from(noted_lines_kept);
    }
    noted_.clear();
    notes_captured_ = notes_;
    return entries;
}

void JournaledImage::forget_fresh_pages(std::uint64_t first) noexcept
{
    for (std::uint64_t i = first; i < dirty_pages_.size(); ++i) {
        fresh_.clear(dirty_pages_[i]);
    }
}

Result<void> JournaledImage::write_pages(bool is_clean) noexcept
{
    const std::uint64_t count = dirty_pages_.size();
    std::ranges::sort(dirty_pages_);
    if (auto written = write_runs(*medium_, image_file_offset_, stable_.data(), dirty_pages_.view()); !written) {
        return written;
    }
    for (const std::uint64_t page : dirty_pages_) {
        dirty_.clear(page);
    }
    dirty_pages_.clear();
    return journal_.begin_epoch(count, is_clean);
}

Result<void> JournaledImage::write_record() noexcept
{
    if (journal_.is_due()) {
        if (auto written = write_pages(false); !written) {
            return written;
        }
    }
    auto entries = capture();
    if (!entries) {
        if (auto written = write_pages(false); !written) {
            return written;
        }
        entries = capture();  // An empty half has room for the whole image.
    }
    if (entries && entries->empty()) {
        return {};
    }
    return entries ? journal_.append(*entries) : fail(SP_E_NO_SPACE, 0, "{}: the journal has no room for the image", medium_->path());
}

Result<void> JournaledImage::fail_for_good(Result<void> result) noexcept
{
    failed_ = true;
    failure_ = result.error();
    return result;
}

Result<void> JournaledImage::commit() noexcept
{
    if (failed_) {
        return pass_on(failure_);
    }
    if (auto written = write_record(); !written) {
        return fail_for_good(written);
    }
    if (auto intact = medium_->check_intact(); !intact) {
        return fail_for_good(intact);
    }
    notes_durable_ = notes_captured_;
    return {};
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
    if (dirty_pages_.empty()) {
        return {};
    }
    auto written = write_pages(true);
    return written ? written : fail_for_good(written);
}

}  // namespace stillpoint::breeze
