// The lines of an epoch: which pages give lines in place of a whole copy, and their copying.

#include <bit>

#include "core/racing_copy.hpp"
#include "engines/pmthreads/capture.hpp"

namespace stillpoint::pmthreads {

namespace {

/// One after the other. As copy_found() says of pages.
void copy_lines(std::byte* to, const std::byte* page, std::uint64_t mask) noexcept
{
    for (; mask != 0; mask &= mask - 1, to += cache_line_bytes) {
        racing_copy(to, page + static_cast<unsigned>(std::countr_zero(mask)) * cache_line_bytes, cache_line_bytes);
    }
}

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

bool Capture::add_lines(std::uint64_t image_page, std::uint64_t mask, const Shadow& shadow) noexcept
{
    if (mask == 0) {
        return false;
    }
    const std::uint64_t before = lines_of_[image_page];
    const bool is_whole = index_of_[image_page] != 0 || many_lines_[image_page] != 0;
    if (is_whole || std::popcount(before | mask) > versions::delta_lines_of_page_max || table_->consistent(image_page).epoch == 0 ||
        !add_group(image_page, mask)) {
        const bool is_new = add(image_page, true, shadow);
        lines_of_[image_page] |= mask;
        return is_new;
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
        tracker.take_whole_page(pages_[i].image_page);
    }
    tracker.order_copies();
}

/// As copy_found() says of pages.
void Capture::copy_groups(void* copying, std::uint64_t begin, std::uint64_t end)
{
    const auto& [capture, shadow] = *static_cast<const GroupCopy*>(copying);
    constexpr std::uint64_t groups_ahead = 6;
    for (std::uint64_t i = capture->first_new_group_ + begin; i < capture->first_new_group_ + end; ++i) {
        if (i + groups_ahead < capture->group_count_) {
            const std::uint64_t ahead = i + groups_ahead;
            const std::byte* const page = shadow->page(capture->group_pages_[ahead]);
            for (std::uint64_t mask = capture->group_masks_[ahead]; mask != 0; mask &= mask - 1) {
                __builtin_prefetch(page + static_cast<unsigned>(std::countr_zero(mask)) * cache_line_bytes);
            }
        }
        copy_lines(capture->lines_of_group(i), shadow->page(capture->group_pages_[i]), capture->group_masks_[i]);
    }
}

}  // namespace stillpoint::pmthreads
