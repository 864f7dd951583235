// Devices that store into durable memory while checkpoints run: a call announces its range, the device stores without a fault, the call
// says what was stored, and withdraws. What others could see of it, or what the call returned with, is in the next checkpoint.

#include <algorithm>

#include "core/units.hpp"
#include "runtime/fase.hpp"
#include "runtime/kernel_writes.hpp"
#include "stillpoint/stillpoint.h"
#include "tests/schedules/scenario_parts.hpp"

namespace stillpoint::schedules {

namespace {

constexpr std::uintptr_t page = (SP_WINDOW_INDEX << SP_WINDOW_SHIFT) + 64 * page_bytes;
constexpr std::uintptr_t page_end = page + page_bytes;

void* page_memory() noexcept { return reinterpret_cast<void*>(page); }

enum class Tracker { arms_pages_in_flight, protects_pages };

/// The kernel pins the page, which is a write for every tracker; what the device stores then is none.
void pin() noexcept
{
    shared.is_protected.store(0);
    shared.is_marked.store(1);
}

void require_not_protected() noexcept
{
    require(shared.is_protected.load(std::memory_order_relaxed) == 0, "a page is protected while a call stores into it");
}

void finish_what_depends_on(std::uint64_t value) noexcept
{
    fase_enter(nullptr);
    shared.datum_finished = std::max(shared.datum_finished, value);
    fase_leave(nullptr);
}

void call_that_stores() noexcept
{
    const char frame = 0;
    const kernel_writes::Slot slot = kernel_writes::announce(page_memory(), page_bytes, &frame);
    require(slot != kernel_writes::no_slot, "there is no slot");
    pin();
    require_not_protected();
    shared.datum.store(1, std::memory_order_release);
    shared.datum.store(2, std::memory_order_release);
    require_not_protected();
    kernel_writes::note_stored(page_memory(), page_bytes);
    kernel_writes::withdraw(slot, &frame);
    finish_what_depends_on(2);
}

/// Another thread, which polls the memory as programs of io_uring and RDMA do.
void thread_that_sees_it() noexcept
{
    if (shared.datum.load(std::memory_order_acquire) != 0) {
        finish_what_depends_on(1);
    }
}

void set(void* found, kernel_writes::PageRun) noexcept { *static_cast<bool*>(found) = true; }

/// As Capture::collect does with what its tracker finds.
void collect(Tracker tracker, bool in_stop) noexcept
{
    bool found = false;
    if (tracker == Tracker::arms_pages_in_flight) {
        found = shared.is_marked.exchange(0) != 0;
    } else {
        const kernel_writes::Protecting protecting;
        if (kernel_writes::first_in_flight(page, page_end).begin != page && shared.is_marked.exchange(0) != 0) {
            shared.is_protected.store(1);
            found = true;
        }
    }
    if (in_stop) {
        kernel_writes::visit_in_flight(page, page_end, &set, &found);
    }
    kernel_writes::take_stored(page, page_end, &set, &found);
    if (found) {
        shared.datum_copied = shared.datum.load(std::memory_order_relaxed);
    }
}

template <Tracker tracker>
void copy_in_stop(void*) noexcept
{
    collect(tracker, true);
    require(shared.datum_copied >= shared.datum_finished, "what a device had stored is not in the copy");
    ++durable.stops;
}

template <Tracker tracker>
void take_checkpoints() noexcept
{
    collect(tracker, false);
    for (int i = 0; i < 2; ++i) {
        require(stop_threads(for_ever_ns, &copy_in_stop<tracker>, nullptr).reached, "an attempt without an end was withdrawn");
    }
}

}  // namespace

/// Alone, before the first schedule: what schedules begin with has the set of stored pages, and a thread that knows its slot.
void prepare_devices() noexcept
{
    require(kernel_writes::reserve().has_value(), "no memory for the set of stored pages");
    const char frame = 0;
    kernel_writes::withdraw(kernel_writes::announce(page_memory(), page_bytes, &frame), &frame);
}

/// A schedule that was given up may have left stored pages.
void begin_with_devices() noexcept
{
    bool found = false;
    kernel_writes::take_stored(page, page_end, &set, &found);
    begin_with_membarrier();
}

void device_or_checkpoint(int thread)
{
    switch (thread) {
    case 0: call_that_stores(); return;
    case 1: thread_that_sees_it(); return;
    default: take_checkpoints<Tracker::arms_pages_in_flight>(); return;
    }
}

void device_or_protecting_checkpoint(int thread)
{
    if (thread == 0) {
        call_that_stores();
    } else {
        take_checkpoints<Tracker::protects_pages>();
    }
}

/// A call whose slot another one has, takes the next one; a free slot costs no look at another.
void count_of_device_calls(int)
{
    const char frame = 0;
    const auto announce = [&frame] { return kernel_writes::announce(page_memory(), page_bytes, &frame); };
    const unsigned before = operations_so_far();
    const kernel_writes::Slot first = announce();
    const unsigned of_free_slot = operations_so_far() - before;
    require(of_free_slot == 6, "an announcement has another number of accesses");
    const kernel_writes::Slot second = announce();
    require(first != second, "two calls have one slot");
    kernel_writes::withdraw(first, &frame);
    require(kernel_writes::first_in_flight(page, page_end).begin == page, "a call has taken another one's range with it");
    kernel_writes::withdraw(second, &frame);
}

void finish_without_calls() noexcept
{
    require(kernel_writes::first_in_flight(page, page_end).begin == page_end, "a range is in flight after its call");
    collect(Tracker::arms_pages_in_flight, true);
    require(shared.datum_copied >= shared.datum_finished, "what a device had stored is not in the last copy");
    finish_clean();
}

}  // namespace stillpoint::schedules
