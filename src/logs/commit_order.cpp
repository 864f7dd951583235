#include "logs/commit_order.hpp"

#include <algorithm>
#include <sched.h>

#include "arch/spin.hpp"
#include "core/canary.hpp"

namespace stillpoint::logs {

void wait_turn(unsigned& turns) noexcept
{
    // The other thread may have lost its CPU; with more threads than CPUs it often has.
    constexpr unsigned pauses = 64;
    if (++turns < pauses) {
        arch::spin_pause();
        return;
    }
    sched_yield();
}

bool CommitOrder::await_preceding(const Slot* own, Timestamp timestamp) noexcept
{
    bool later_updates = false;
    const std::uint32_t count = slot_count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
        const Slot& other = slots_[i];
        if (&other == own) {
            continue;
        }
        std::uint64_t stamp = other.stamp.load(std::memory_order_acquire);
        for (unsigned turns = 0; (stamp & 1) == 0 && stamp != 0 && stamp >> 1 <= timestamp && !is_removed(Canary::await_preceding);) {
            wait_turn(turns);
            stamp = other.stamp.load(std::memory_order_acquire);
        }
        later_updates |= stamp >> 1 > timestamp && other.updates.load(std::memory_order_acquire);
    }
    return later_updates;
}

Timestamp CommitOrder::newest_up_to(Timestamp timestamp) const noexcept
{
    Timestamp newest = 0;
    const std::uint32_t count = slot_count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
        const Slot& slot = slots_[i];
        std::uint64_t stamp = slot.stamp.load(std::memory_order_acquire);
        for (unsigned turns = 0; (stamp & 1) == 0 && stamp != 0 && stamp >> 1 <= timestamp;) {
            wait_turn(turns);
            stamp = slot.stamp.load(std::memory_order_acquire);
        }
        // A thread's earlier transaction is durable when its next one begins.
        if (stamp >> 1 <= timestamp && slot.updates.load(std::memory_order_acquire)) {
            newest = std::max(newest, stamp >> 1);
        }
    }
    return newest;
}

void CommitOrder::await_markers_before(std::uint32_t number, Timestamp timestamp) noexcept
{
    const std::uint32_t count = slot_count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
        const Slot& other = slots_[i];
        for (unsigned turns = 0; i != number; wait_turn(turns)) {
            const std::uint64_t stamp = other.stamp.load(std::memory_order_acquire);
            const bool precedes = (stamp & 1) == 0 && stamp != 0 && stamp >> 1 <= timestamp;
            if (!precedes || (stamp >> 1 == timestamp && i > number && other.updates.load(std::memory_order_acquire))) {
                break;
            }
        }
    }
}

namespace {

void raise(std::atomic<Timestamp>& word, Timestamp timestamp) noexcept
{
    Timestamp seen = word.load(std::memory_order_relaxed);
    while (seen < timestamp && !word.compare_exchange_weak(seen, timestamp, std::memory_order_release, std::memory_order_relaxed)) {
    }
}

}  // namespace

void CommitOrder::raise_durable(Timestamp timestamp) noexcept { raise(durable_, timestamp); }
void CommitOrder::raise_marked(Timestamp timestamp) noexcept { raise(marked_, timestamp); }

void CommitOrder::find_durable(Timestamp now, const Slot& stores) noexcept
{
    // A transaction that is announced after the look at its slot has a timestamp that is later than `now`.
    Timestamp up_to = now - 1;
    const std::uint32_t count = slot_count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
        const Slot& slot = slots_[i];
        if (&slot == &stores) {
            const Timestamp marked = marked_.load(std::memory_order_acquire);
            up_to = slot.stamp.load(std::memory_order_acquire) >> 1 > marked ? std::min(up_to, marked) : up_to;
        } else if (const Timestamp open = slot.open.load(std::memory_order_acquire); open != 0) {
            up_to = std::min(up_to, open - 1);
        }
    }
    raise_durable(up_to);
}
}  // namespace stillpoint::logs
