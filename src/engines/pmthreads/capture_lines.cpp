// The lines of an epoch: which pages give lines in place of a whole copy, and their copying.

#include <algorithm>
#include <bit>

#include "core/racing_copy.hpp"
#include "engines/pmthreads/capture.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::pmthreads {

namespace {

/// One after the other. As copy_found() says of pages.
void copy_lines(std::byte* to, const std::byte* page, std::uint64_t mask) noexcept
{
    for (; mask != 0; mask &= mask - 1, to += cache_line_bytes) {
        racing_copy(to, page + static_cast<unsigned>(std::countr_zero(mask)) * cache_line_bytes, cache_line_bytes);
    }
}

/// Each to its place in the copy of the page.
void copy_lines_in_place(std::byte* copy, const std::byte* page, std::uint64_t mask) noexcept
{
    for (; mask != 0; mask &= mask - 1) {
        const std::uint64_t at = static_cast<unsigned>(std::countr_zero(mask)) * cache_line_bytes;
        racing_copy(copy + at, page + at, cache_line_bytes);
    }
}

void prefetch_lines(const std::byte* page, std::uint64_t mask) noexcept
{
    for (; mask != 0; mask &= mask - 1) {
        __builtin_prefetch(page + static_cast<unsigned>(std::countr_zero(mask)) * cache_line_bytes);
    }
}

constexpr std::uint64_t pages_ahead = 6;

}  // namespace

Result<void> Capture::reserve_lines(std::uint64_t image_pages_max)
{
    if (auto done = wanted_.reserve(image_pages_max, "the pages of an epoch"); !done || log_ == nullptr) {
        return done;
    }
    if (auto done = made_whole_.reserve(image_pages_max, "the pages of an epoch"); !done) {
        return done;
    }
    if (auto done = many_lines_.reserve(image_pages_max, "the lines of an epoch"); !done) {
        return done;
    }
    if (auto done = patches_.reserve(staging_pages_, "the lines of an epoch"); !done) {
        return done;
    }
    const std::uint64_t lines_max = image_pages_max * versions::lines_per_page;
    if (auto done = lines_of_.reserve(image_pages_max, "the lines of an epoch"); !done) {
        return done;
    }
    if (auto done = group_pages_.reserve(lines_max, "the lines of an epoch"); !done) {
        return done;
    }
    if (auto done = group_masks_.reserve(lines_max, "the lines of an epoch"); !done) {
        return done;
    }
    if (auto done = group_lines_.reserve(lines_max, "the lines of an epoch"); !done) {
        return done;
    }
    return lines_.reserve((lines_max + versions::lines_per_page) * cache_line_bytes, "the lines of an epoch");
}

void Capture::make_room_for_lines() noexcept
{
    if (!keeps_copies_) {
        return;
    }
    // More than nearly every stop copies: passes end when few are left.
    constexpr std::uint64_t lines_of_stop = 16384;
    const std::uint64_t end = std::min(round_up(line_count_ + lines_of_stop, lines_of_stop), lines_.capacity() / cache_line_bytes);
    if (end > lines_present_) {
        // A kernel that cannot (before 5.14) gives them in the stop.
        os::populate_own(lines_.data() + lines_present_ * cache_line_bytes, (end - lines_present_) * cache_line_bytes);
        lines_present_ = end;
    }
}

bool Capture::add_lines(std::uint64_t image_page, std::uint64_t mask, const Shadow& shadow) noexcept
{
    if (mask == 0) {
        return false;
    }
    const std::uint64_t before = lines_of_[image_page];
    const bool is_whole = index_of_[image_page] != 0 || many_lines_[image_page] != 0;
    if (is_whole || std::popcount(before | mask) > versions::delta_lines_of_page_max || table_->consistent(image_page).epoch == 0 ||
        !add_group(image_page, mask)) {
        const bool is_new = add(image_page, true, shadow, mask);
        lines_of_[image_page] |= mask;
        return is_new;
    }
    if (slot_of_[image_page] != 0) {
        add_patch(image_page, mask);
    }
    lines_of_[image_page] |= mask;
    if (before == 0) {
        ++pages_in_part_;
    }
    // Another line of the page is not one that was written again.
    found_again_ += (before & mask) != 0 ? 1U : 0U;
    lines_again_ += static_cast<std::uint64_t>(std::popcount(before & mask));
    return true;
}

void Capture::add_patch(std::uint64_t image_page, std::uint64_t lines) noexcept
{
    patch_lines_ += static_cast<std::uint64_t>(std::popcount(lines));
    const std::uint32_t slot = slot_of_[image_page] - 1;
    slot_changes_[slot] |= lines;
    patches_[patch_count_++] = {lines, static_cast<std::uint32_t>(image_page), slot};
}

bool Capture::add_group(std::uint64_t image_page, std::uint64_t mask) noexcept
{
    const auto count = static_cast<std::uint64_t>(std::popcount(mask));
    if (!log_->has_room(group_count_ + 1, line_count_ + count)) {
        return false;
    }
    group_pages_[group_count_] = static_cast<std::uint32_t>(image_page);
    group_masks_[group_count_] = mask;
    group_lines_[group_count_] = static_cast<std::uint32_t>(line_count_);
    ++group_count_;
    line_count_ += count;
    return true;
}

bool Capture::give_lines(std::uint64_t index, std::uint64_t mask) noexcept
{
    if (!add_group(page(index), mask)) {
        return false;
    }
    copy_lines(lines_of_group(group_count_ - 1), staged(index), mask);
    return true;
}

/// Lines of these pages that have no mark may have locks that are held now: a release marks those from here on.
void Capture::take_whole_pages(Tracker& tracker) noexcept
{
    if (first_new_whole_ == page_count_ || !tracker.has_lines()) {
        return;
    }
    for (std::uint64_t i = first_new_whole_; i < page_count_; ++i) {
        if (!pages_[i].is_patched) {  // The other lines of a patched one are as in the last stop: no lock is held there.
            tracker.take_whole_page(pages_[i].image_page);
        }
    }
    tracker.order_copies();
}

void Capture::copy_lines_of(std::uint64_t count, CopyTeam::Work work, LinesCopy& copying, CopyTeam* team, Pacer* pacer) noexcept
{
    constexpr std::uint64_t at_a_time = 256;
    if (team != nullptr && count > 4 * at_a_time) {
        team->share(count, at_a_time, work, &copying);
        return;
    }
    for (std::uint64_t i = 0; i < count; i += at_a_time) {
        work(&copying, i, std::min(count, i + at_a_time));
        if (pacer != nullptr) {
            pacer->step_done();
        }
    }
}

/// As copy_found() says of pages.
void Capture::copy_groups(void* copying, std::uint64_t begin, std::uint64_t end)
{
    const auto& [capture, shadow] = *static_cast<const LinesCopy*>(copying);
    for (std::uint64_t i = capture->first_new_group_ + begin; i < capture->first_new_group_ + end; ++i) {
        if (const std::uint64_t ahead = i + pages_ahead; ahead < capture->group_count_) {
            prefetch_lines(shadow->page(capture->group_pages_[ahead]), capture->group_masks_[ahead]);
        }
        copy_lines(capture->lines_of_group(i), shadow->page(capture->group_pages_[i]), capture->group_masks_[i]);
    }
}

void Capture::patch_copies(void* copying, std::uint64_t begin, std::uint64_t end)
{
    const auto& [capture, shadow] = *static_cast<const LinesCopy*>(copying);
    for (std::uint64_t i = begin; i < end; ++i) {
        if (const std::uint64_t ahead = i + pages_ahead; ahead < capture->patch_count_) {
            const Patch& later = capture->patches_[ahead];
            prefetch_lines(shadow->page(later.image_page), later.lines);
            prefetch_lines(capture->copy_in(later.slot), later.lines);
        }
        const Patch& patch = capture->patches_[i];
        if (capture->slot_pages_[patch.slot] != patch.image_page + 1) {
            continue;  // The page gives lines, and a page that was found later has its slot.
        }
        copy_lines_in_place(capture->copy_in(patch.slot), shadow->page(patch.image_page), patch.lines);
    }
}

}  // namespace stillpoint::pmthreads
