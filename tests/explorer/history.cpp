#include "history.hpp"

#include <algorithm>
#include <cstring>

#include "page_digests.hpp"

namespace stillpoint::explorer {

void History::apply(const sim::Event& event)
{
    switch (event.kind) {
    case sim::EventKind::acknowledge:
        floor_.epoch = std::max(floor_.epoch, event.value);
        floor_.operations = std::max(floor_.operations, event.offset);
        told_ = std::max(told_, event.size);
        break;
    case sim::EventKind::state: {
        auto state = std::make_shared<EpochState>();
        std::vector<std::uint64_t> words(event.size / sizeof(std::uint64_t));
        std::memcpy(words.data(), event.data, event.size);
        state->operations = words[0];
        state->page_digests.assign(words.begin() + 2, words.end());
        state->image_digest = image_digest(state->page_digests);
        states_[event.value] = std::move(state);
        told_ = std::max(told_, event.value);
        break;
    }
    case sim::EventKind::operation: std::memcpy(&operations_[event.value], event.data, sizeof(std::uint64_t)); break;
    default: parts_.apply(event); break;
    }
}

void History::begin_run(std::uint64_t epoch, std::uint64_t operations, std::uint64_t first_epoch)
{
    run_began_with_ = first_epoch;
    operations_.erase(operations_.upper_bound(operations), operations_.end());
    states_.erase(states_.upper_bound(epoch), states_.end());
}

void History::forgive_newest(std::size_t operations) noexcept
{
    parts_.forgive_newest(operations);
    if (operations_only_) {
        floor_.operations -= std::min<std::uint64_t>(operations, floor_.operations);
    }
}

const EpochState* History::state(std::uint64_t epoch) const
{
    const auto behind = states_.upper_bound(epoch);
    if (behind == states_.begin()) {
        return nullptr;
    }
    const auto found = std::prev(behind);
    const bool stands_for_it = by_the_clock_ && found->first >= run_began_with_;
    return found->first == epoch || stands_for_it ? found->second.get() : nullptr;
}

const std::uint64_t* History::operation(std::uint64_t operations) const
{
    const auto found = operations_.find(operations);
    return found == operations_.end() ? nullptr : &found->second;
}

}  // namespace stillpoint::explorer
