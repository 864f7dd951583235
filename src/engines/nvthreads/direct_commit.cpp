#include "engines/nvthreads/direct_commit.hpp"

#include "core/canary.hpp"

namespace stillpoint::nvthreads {

void DirectCommit::start(const Parts& parts) noexcept
{
    parts_ = parts;
    first_ = parts.clock->now();
    marker_.emplace(*parts.medium, parts.marker_offset, *parts.order);
    marker_->start();
}

std::uint32_t DirectCommit::settle(Timestamp timestamp, std::uint64_t words, bool is_part) noexcept
{
    // Threads whose stores this one may have seen raised newest_marked_ before they handed them over.
    const bool has_seen_durable_alone = newest_marked() <= parts_.order->durable() || is_removed(Canary::seen_parts);
    if (parts_.spares_markers && !is_part && words <= logs::record_words_max && has_seen_durable_alone) {
        return logs::stands_alone;
    }
    Timestamp seen = newest_marked_.load(std::memory_order_relaxed);
    while (seen < timestamp &&
           !newest_marked_.compare_exchange_weak(seen, timestamp, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
    return 0;
}

DirectCommit::Outcome DirectCommit::raise_marker(Timestamp needed) noexcept
{
    const Timestamp cut = parts_.open_fases->cut(*parts_.clock);
    if (cut < needed) {
        return Outcome::open;
    }
    if (cut <= first_ || cut <= parts_.order->durable()) {
        return Outcome::durable;
    }
    // The marker's record is there, and all before it: none has been given a timestamp up to the cut and is not in its log.
    static_cast<void>(parts_.order->await_preceding(nullptr, cut));
    return marker_->raise(cut, false) ? Outcome::durable : Outcome::lost;
}

}  // namespace stillpoint::nvthreads
