// The staging memory of copies: which page has which slot of it, when it gets memory, and when that goes back.

#include <algorithm>
#include <utility>

#include "engines/pmthreads/capture.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::pmthreads {

std::uint32_t Capture::take_slot(std::uint64_t image_page) noexcept
{
    if (!keeps_copies_) {  // Next to each other, as their pages are written.
        slot_count_ = std::max(slot_count_, std::min(staged_count_ + 1, staging_pages_));
        return staged_count_ < staging_pages_ ? static_cast<std::uint32_t>(staged_count_) : no_slot;
    }
    if (slot_of_[image_page] != 0) {
        return slot_of_[image_page] - 1;
    }
    constexpr unsigned looks_max = 16;
    const bool may_be_free = slot_count_ >= slots_used_.peak() && slot_count_ > staged_count_;
    std::uint64_t slot = slot_count_;
    for (unsigned look = 0; may_be_free && look < looks_max; ++look) {
        slot_hand_ = slot_hand_ + 1 < slot_count_ ? slot_hand_ + 1 : 0;
        const std::uint32_t owner = slot_pages_[slot_hand_];
        if (owner == 0 || index_of_[owner - 1] == 0) {
            slot = slot_hand_;
            break;
        }
    }
    if (slot == staging_pages_) {
        return no_slot;
    }
    if (slot == slot_count_) {
        ++slot_count_;
    } else {
        free_slot(slot);
    }
    slot_pages_[slot] = static_cast<std::uint32_t>(image_page) + 1;
    slot_of_[image_page] = static_cast<std::uint32_t>(slot) + 1;
    return static_cast<std::uint32_t>(slot);
}

void Capture::make_room_for_copies(std::uint64_t new_pages, std::uint64_t image_pages, Pacer& pacer) noexcept
{
    constexpr std::uint64_t at_a_time = 2 * mib / page_bytes;
    constexpr std::uint64_t pages_of_stop = 8 * mib / page_bytes;
    slots_present_ = std::max(slots_present_, slot_count_);
    const std::uint64_t wanted = round_up(slot_count_ + std::min(new_pages, pages_of_stop), at_a_time);
    const std::uint64_t end = std::min({wanted, staging_pages_, image_pages});
    while (slots_present_ < end) {
        const std::uint64_t next = std::min(end, round_up(slots_present_ + 1, at_a_time));
        // A kernel that cannot (before 5.14) gives them in the stop.
        os::populate_own(staging_.data() + slots_present_ * page_bytes, (next - slots_present_) * page_bytes);
        slots_present_ = next;
        pacer.step_done();
    }
}

void Capture::free_slot(std::uint64_t slot) noexcept
{
    if (const std::uint32_t owner = std::exchange(slot_pages_[slot], 0); owner != 0) {
        slot_of_[owner - 1] = 0;
    }
}

/// Staging memory that no epoch of the last seconds used goes back: a program that writes in bursts keeps it between them, one that rests
/// does not. Memory that the system has reclaimed costs more than to copy into it: it is zeroed, and where the system is a virtual machine
/// its host may have to give it, too.
void Capture::return_unused(std::uint64_t now_ns) noexcept
{
    staging_peak_ = std::max(staging_peak_, slot_count_);
    slots_used_.note(staged_count_, now_ns);
    if (std::max(slot_count_, slots_present_) > 2 * slots_used_.peak() + worth_returning_bytes / page_bytes) {
        for (std::uint64_t slot = slots_used_.peak(); slot < slot_count_; ++slot) {
            free_slot(slot);
        }
        slot_count_ = std::min(slot_count_, slots_used_.peak());
        slots_present_ = slot_count_;
        staging_.discard_from(slot_count_ * page_bytes);
    }
    lines_present_ = std::max(lines_present_, line_count_);
    lines_used_.note(line_count_, now_ns);
    if (lines_present_ > 2 * lines_used_.peak() + worth_returning_bytes / cache_line_bytes) {
        lines_present_ = lines_used_.peak();
        lines_.discard_from(lines_present_ * cache_line_bytes);
    }
}

}  // namespace stillpoint::pmthreads
