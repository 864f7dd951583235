#include "versions/location_allocator.hpp"

#include <algorithm>
#include <bit>

namespace stillpoint::versions {

Result<void> LocationAllocator::reserve(std::uint64_t file_pages_max)
{
    if (auto done = without_room_.reserve(file_pages_max, "the map of free pool pages"); !done) {
        return done;
    }
    return free_.reserve(file_pages_max, "the map of free pool pages");
}

void LocationAllocator::add_segment(const Segment& segment) noexcept
{
    const std::uint64_t first = first_data_page(segment);
    const std::uint64_t count = data_pages_per_image_page * segment.image_pages;
    for (std::uint64_t page = first; page < first + count; ++page) {
        free_.set(page);
    }
    free_pages_ += count;
    end_ = std::max(end_, first + count);
    if (second_copies_are_late_) {
        note_without_room({first + segment.image_pages, first + count});
    }
}

void LocationAllocator::take(std::uint32_t location) noexcept
{
    free_.clear(location);
    free_pages_ -= has_room(location) ? 1u : 0u;
    without_room_.clear(location);  // A copy lies there, or will.
}

void LocationAllocator::give_back(std::uint32_t location) noexcept
{
    free_.set(location);
    free_pages_ += has_room(location) ? 1u : 0u;
}

void LocationAllocator::note_without_room(FilePageRange pages) noexcept
{
    for (std::uint64_t page = pages.begin; page < pages.end; ++page) {
        if (is_free_and_has_room(static_cast<std::uint32_t>(page))) {
            without_room_.set(page);
            --free_pages_;
        }
    }
    room_cursor_ = std::min(room_cursor_, pages.begin);
}

FilePageRange LocationAllocator::room_to_take() noexcept
{
    constexpr std::uint64_t few_pages = 16;
    constexpr std::uint64_t pages_at_a_time = 512;
    if (free_pages_ >= few_pages) {
        return {};
    }
    while (room_cursor_ < end_ && has_room(room_cursor_)) {
        room_cursor_ = without_room_.word(room_cursor_ / 64) == 0 ? (room_cursor_ / 64 + 1) * 64 : room_cursor_ + 1;
    }
    if (room_cursor_ >= end_) {
        return {};
    }
    FilePageRange pages{room_cursor_, room_cursor_ + 1};
    while (pages.end < end_ && !has_room(pages.end) && pages.end - pages.begin < pages_at_a_time) {
        ++pages.end;
    }
    return pages;
}

void LocationAllocator::note_room(FilePageRange pages) noexcept
{
    for (std::uint64_t page = pages.begin; page < pages.end; ++page) {
        if (!has_room(page)) {
            without_room_.clear(page);
            free_pages_ += free_.test(page) ? 1u : 0u;
        }
    }
}

LocationAllocator::Run LocationAllocator::find_from(std::uint64_t begin, std::uint64_t end, std::uint32_t wanted,
                                                    std::uint32_t at_least) const noexcept
{
    std::uint64_t page = begin;
    while (page < end) {
        const std::uint64_t free_here = free_with_room(page / 64) >> (page % 64);
        if (free_here == 0) {
            page = (page / 64 + 1) * 64;
            continue;
        }
        page += static_cast<unsigned>(std::countr_zero(free_here));
        if (page >= end) {
            break;
        }
        const std::uint64_t limit = std::min(end, page + wanted);
        std::uint64_t stop = page;
        while (stop < limit) {
            const std::uint64_t used_here = ~free_with_room(stop / 64) >> (stop % 64);
            const std::uint64_t in_word = 64 - stop % 64;
            const std::uint64_t run = used_here == 0 ? in_word
                                                     : std::min<std::uint64_t>(in_word, static_cast<unsigned>(std::countr_zero(used_here)));
            stop += run;
            if (run < in_word) {
                break;
            }
        }
        stop = std::min(stop, limit);
        if (stop - page >= at_least) {
            return {static_cast<std::uint32_t>(page), static_cast<std::uint32_t>(stop - page)};
        }
        page = stop + 1;
    }
    return {};
}

LocationAllocator::Run LocationAllocator::take_run(std::uint32_t wanted) noexcept
{
    while (true) {
        const std::uint32_t at_least = std::min(wanted, shortest_accepted_);
        Run run = find_from(cursor_, end_, wanted, at_least);
        if (run.count == 0) {
            run = find_from(0, end_, wanted, at_least);
        }
        if (run.count != 0) {
            for (std::uint32_t i = 0; i < run.count; ++i) {
                free_.clear(run.first + i);
            }
            free_pages_ -= run.count;
            cursor_ = run.first + run.count;
            return run;
        }
        if (shortest_accepted_ == 1) {
            return {};
        }
        shortest_accepted_ /= 4;  // 64, 16, 4, 1
    }
}

}  // namespace stillpoint::versions
