// When no run fits: idle memory first, then a larger image, then whatever is left anywhere.

#include <algorithm>
#include <mutex>

#include "heap/thread_cache.hpp"

namespace stillpoint::heap {

namespace {

/// Pages per class that are loaded from the medium for a look at unknown spans before the image grows.
constexpr std::uint32_t scan_budget_before_growth = 16;

void note_full(const HeapState& state, std::uint64_t spans) noexcept
{
    failure_slot() = fail(SP_E_POOL_FULL, 0,
                          "no room for {} KiB: the durable memory is at its maximum of {} MiB; free some, or end the program and "
                          "raise the maximum: `stillpoint grow`",
                          spans * span_bytes / kib, state.options.image_bytes_max / mib)
                         .value();
}

/// True: there are more spans than the caller saw.
bool grow(HeapState& state, const RoomSearch& search) noexcept
{
    const std::lock_guard hold(state.growth_lock);
    const std::uint64_t count = state.span_count.load(std::memory_order_acquire);
    if (count != search.count_seen) {
        return true;  // Another thread has grown it meanwhile.
    }
    const std::uint64_t at_end = std::min(free_spans_at_end(state), search.spans);
    const std::uint64_t spans_needed = count + (search.spans - at_end);
    if (spans_needed > state.layout.spans_max || spans_needed == count) {
        note_full(state, search.spans);
        return false;
    }
    // The pool adds what its own policy adds.
    auto grown = state.options.grow(state.options.grow_context, state.layout.spans_offset + spans_needed * span_bytes);
    if (!grown) {
        failure_slot() = grown.error();
        return false;
    }
    state.image_bytes = std::min(*grown, state.options.image_bytes_max);
    const std::uint64_t now = state.layout.spans_in(state.image_bytes);
    if (now <= count) {
        note_full(state, search.spans);
        return false;
    }
    add_spans(state, now);
    return true;
}

}  // namespace

bool make_room(HeapState& state, RoomSearch& search) noexcept
{
    if (!search.reclaimed) {
        search.reclaimed = true;
        reclaim_dead_threads(state);
        release_empty_spans(state, own_home(state), scan_budget_before_growth);
        return true;
    }
    if (grow(state, search)) {
        return true;
    }
    if (search.exhausted) {
        return false;
    }
    search.exhausted = true;
    flush_own_cache(state);
    release_empty_spans(state, own_home(state), UINT32_MAX);
    return true;
}

}  // namespace stillpoint::heap
