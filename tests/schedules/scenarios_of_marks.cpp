// The tracker hooks: store, test, mark against clear, membarrier, copy; and the stop after it.

#include "core/store_marks.hpp"
#include "os/card_order.hpp"
#include "runtime/fase.hpp"
#include "tests/schedules/scenario_parts.hpp"

namespace stillpoint::schedules {

namespace {

constexpr std::uint8_t whole_card = 0xff;
constexpr std::uint8_t tag = 2;

void store_and_mark(std::uint64_t value) noexcept
{
    fase_enter(nullptr);
    shared.datum.store(value, std::memory_order_relaxed);
    store_marks::mark_card(shared.card, shared.page_card);
    shared.datum_finished = value;
    fase_leave(nullptr);
    forget_past();
}

void copy_if_marked() noexcept
{
    if (store_marks::take_marks(shared.page_card, whole_card) != 0 && store_marks::take_lines(shared.card, tag) != 0) {
        shared.datum_copied = shared.datum.load(std::memory_order_relaxed);
    }
}

void copy_marked_in_stop(void*) noexcept
{
    copy_if_marked();
    require(shared.datum_copied == shared.datum_finished, "a store whose mark was taken is not in the copy, or its mark was lost");
    ++durable.stops;
}

void collect_and_stop() noexcept
{
    if (store_marks::take_marks(shared.page_card, whole_card) != 0) {
        os::order_copies_after_clear();
        if (store_marks::take_lines(shared.card, tag) != 0) {
            os::order_copies_after_clear();
            shared.datum_copied = shared.datum.load(std::memory_order_relaxed);
        }
    }
    require(stop_threads(for_ever_ns, &copy_marked_in_stop, nullptr).reached, "an attempt without an end was withdrawn");
}

}  // namespace

void marker_or_collector(int thread)
{
    if (thread == 0) {
        store_and_mark(1);
        store_and_mark(2);
    } else {
        collect_and_stop();
    }
}

/// A card that is marked is tested and not stored to: threads that mark one page share its card's line.
void count_of_marks(int)
{
    store_marks::mark_card(shared.card, shared.page_card);
    const unsigned before = operations_so_far();
    store_marks::mark_card(shared.card, shared.page_card);
    require(operations_so_far() - before == 2, "a mark of a marked card has another number of accesses");
    require(store_marks::take_marks(shared.page_card, std::uint8_t{0x0f}) == 1, "a part of a word's marks cannot be taken");
    require(store_marks::take_marks(shared.page_card, whole_card) == 0, "a mark was taken and is there");
    require(store_marks::take_lines(shared.card, tag) == 1, "a line's mark is not taken");
    require(store_marks::take_lines(shared.card, tag) == 0 && shared.card == tag, "a line's mark was taken and is there");
}

}  // namespace stillpoint::schedules
