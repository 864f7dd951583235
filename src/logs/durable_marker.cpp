#include "logs/durable_marker.hpp"

#include <atomic>

#include "core/canary.hpp"

namespace stillpoint::logs {

void DurableMarker::start() noexcept
{
    medium_.write_back_line(offset_);
    medium_.fence();
}

bool DurableMarker::wait(Timestamp timestamp) const noexcept
{
    for (unsigned turns = 0; order_.durable() < timestamp;) {
        if (medium_.has_lost_pages()) {
            return false;
        }
        wait_turn(turns);
    }
    return !medium_.has_lost_pages();
}

bool DurableMarker::raise(Timestamp timestamp, bool later_updates) noexcept
{
    if (order_.durable() >= timestamp || later_updates) {
        return wait(timestamp);
    }
    // The word only rises, and what is there was checked when the pool was opened.
    auto* const word = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(medium_.mapping() + offset_));
    std::uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    while (seen >> 5 < timestamp) {
        if (medium_.compare_exchange_word(offset_, seen, encode_marker(timestamp))) {
            if (!is_removed(Canary::marker_write_back)) {
                medium_.write_back_line(offset_);
            }
            if (!is_removed(Canary::marker_fence)) {
                medium_.fence();
            }
            if (medium_.has_lost_pages()) {
                return false;
            }
            order_.raise_marked(timestamp);
            order_.raise_durable(timestamp);
            return true;
        }
    }
    return wait(timestamp);
}

}  // namespace stillpoint::logs
