#include "runtime/section_ends.hpp"

namespace stillpoint::section_ends {

namespace {

constinit std::atomic<const Calls*> wanted{nullptr};

void hand_over(Handover handover) noexcept
{
    if (const Calls* const calls = wanted.load(std::memory_order_acquire); calls != nullptr) {
        calls->hand_over(handover);
    }
}

std::uint32_t own_depth() noexcept
{
    const ThreadRecord* const record = fase::own_record;
    return record != nullptr ? record->depth.load(std::memory_order_relaxed) : 0;
}

}  // namespace

void want(const Calls& calls) noexcept
{
    wanted.store(&calls, std::memory_order_release);
    fase::gate.bits.fetch_or(fase::section_ends_told);
}

void want_nothing() noexcept
{
    fase::gate.bits.fetch_and(~static_cast<std::uint32_t>(fase::section_ends_told));
    wanted.store(nullptr, std::memory_order_release);
}

void tell_release(const void* lock) noexcept
{
    const std::uint32_t depth = own_depth();
    const bool is_counted = !fase::is_ignored(lock);
    hand_over(depth == 0 ? Handover::outside : depth == 1 && is_counted ? Handover::section_ends : Handover::inside);
}

void tell_wakeup() noexcept { hand_over(own_depth() == 0 ? Handover::outside : Handover::inside); }

void tell_section_ends() noexcept
{
    hand_over(fase::own_record->section_begun.load(std::memory_order_relaxed) != 0 ? Handover::section_ends : Handover::call_ends);
}

/// A call of the heap is a section of its own, for which nothing waits.
void tell_ended() noexcept
{
    ThreadRecord* const record = fase::own_record;
    if (record == nullptr || record->depth.load(std::memory_order_relaxed) != 0 ||
        record->section_begun.load(std::memory_order_relaxed) == 0) {
        return;
    }
    record->section_begun.store(0, std::memory_order_relaxed);
    if (const Calls* const calls = wanted.load(std::memory_order_acquire); calls != nullptr) {
        calls->ended();
    }
}

}  // namespace stillpoint::section_ends
