#include "held_writes.hpp"

#include <algorithm>

namespace stillpoint::rados {

std::vector<std::uint32_t> HeldWrites::slots_of(std::uint64_t object) const
{
    std::vector<std::uint32_t> slots;
    for (std::uint32_t slot = 0; slot < write_slots; ++slot) {
        if (writes_[slot].state != State::none && writes_[slot].object == object) {
            slots.push_back(slot);
        }
    }
    std::ranges::sort(slots, {}, [&](std::uint32_t slot) { return writes_[slot].number; });
    return slots;
}

bool HeldWrites::begin(std::uint32_t slot, std::uint64_t object)
{
    const bool is_behind = std::ranges::any_of(slots_of(object), [&](std::uint32_t other) { return writes_[other].state == State::held; });
    writes_[slot] = {is_behind ? State::held : State::sent, is_behind, object, next_number_++};
    return !is_behind;
}

std::vector<std::uint32_t> HeldWrites::end(std::uint32_t slot, bool is_refused)
{
    writes_[slot].state = is_refused ? State::held : State::answered;
    std::vector<std::uint32_t> ended;
    bool is_first = true;
    bool is_behind_held = false;
    for (const std::uint32_t other : slots_of(writes_[slot].object)) {
        State& state = writes_[other].state;
        if (is_first && state == State::answered) {
            writes_[other] = {};
            ended.push_back(other);
            continue;
        }
        is_first = false;
        if (is_behind_held && state == State::answered) {
            state = State::held;  // The one before it will write over it.
        }
        writes_[other].was_held = writes_[other].was_held || state == State::held;
        is_behind_held = is_behind_held || state == State::held;
    }
    return ended;
}

std::vector<std::uint32_t> HeldWrites::take()
{
    std::vector<std::uint32_t> again;
    for (std::uint32_t slot = 0; slot < write_slots; ++slot) {
        if (writes_[slot].state != State::held) {
            continue;
        }
        const auto all = slots_of(writes_[slot].object);
        if (std::ranges::all_of(all, [&](std::uint32_t other) { return writes_[other].state == State::held; })) {
            for (const std::uint32_t other : all) {
                writes_[other].state = State::sent;
                again.push_back(other);
            }
        }
    }
    return again;
}

bool HeldWrites::is_full() const noexcept
{
    return std::ranges::any_of(writes_, [](const Write& write) { return write.was_held; });
}

}  // namespace stillpoint::rados
