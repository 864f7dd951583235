#include "part_history.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "arch/checksum.hpp"

namespace stillpoint::explorer {

std::size_t PartHistory::find(const Part& part, std::uint64_t digest) noexcept
{
    const auto from = part.states.begin() + static_cast<std::ptrdiff_t>(part.floor);
    return static_cast<std::size_t>(std::find(from, part.states.end(), digest) - part.states.begin());
}

std::string PartHistory::problem_of(std::uint64_t name, const Part& part, std::uint64_t digest)
{
    if (find(part, digest) < part.states.size()) {
        return "";
    }
    const auto before = std::find(part.states.begin(), part.states.end(), digest);
    const std::string is = before != part.states.end()
                               ? fmt::format("is as after operation {}", before - part.states.begin())
                               : std::string(digest == absent ? "is gone" : "is in no state that it ever had, or in one that was lost");
    return fmt::format("part {} {}; operation {} of {} was acknowledged", name, is, part.floor, part.states.size() - 1);
}

void PartHistory::apply(const sim::Event& event)
{
    switch (event.kind) {
    case sim::EventKind::part_recovered: {
        Part& part = parts_[event.offset];
        problem_ = problem_of(event.offset, part, event.value);
        if (problem_.empty()) {
            part.floor = find(part, event.value);  // The program continues from it: it may not be rolled back any more.
            part.states.resize(part.floor + 1);
        }
        break;
    }
    case sim::EventKind::part_state: {
        Part& part = parts_[event.offset];
        if (part.states.back() == absent) {
            part.number_told = 0;  // Another object.
        }
        part.states.push_back(event.value);
        break;
    }
    case sim::EventKind::part_withdrawn: {
        Part& part = parts_[event.offset];
        const auto newest = std::find(part.states.rbegin(), part.states.rend(), event.value);
        if (newest != part.states.rend()) {
            const auto place = std::next(newest).base();
            // A later state may have been acknowledged meanwhile: that of another thread, which was in the way.
            part.floor -= static_cast<std::size_t>(place - part.states.begin()) < part.floor ? 1U : 0U;
            part.states.erase(place);
        }
        break;
    }
    case sim::EventKind::part_acknowledge: {
        Part& part = parts_[event.offset];
        // The newest one: an object may have been deleted, made and deleted.
        const auto newest = std::find(part.states.rbegin(), part.states.rend(), event.value);
        if (newest != part.states.rend()) {
            part.floor = std::max<std::size_t>(part.floor, static_cast<std::size_t>(part.states.rend() - newest) - 1);
        }
        break;
    }
    case sim::EventKind::part_number: {
        Part& part = parts_[event.offset];
        if (event.size != 0 && event.value <= part.number_told) {
            problem_ = fmt::format("part {}: commit number {} is given out again; {} was told", event.offset, event.value,
                                   part.number_told);
        }
        part.number_told = std::max(part.number_told, event.value);
        break;
    }
    default: break;
    }
}

std::string PartHistory::judge(const PartDigests& recovered) const
{
    for (const auto& [name, part] : parts_) {
        const auto found = recovered.find(name);
        if (std::string problem = problem_of(name, part, found != recovered.end() ? found->second : absent); !problem.empty()) {
            return problem;
        }
    }
    for (const auto& [name, digest] : recovered) {
        if (digest != absent && !parts_.contains(name)) {
            return fmt::format("part {} was never made", name);
        }
    }
    return "";
}

void PartHistory::forgive_newest(std::size_t operations) noexcept
{
    for (auto& [name, part] : parts_) {
        part.floor -= std::min(operations, part.floor);
    }
}

std::uint64_t PartHistory::floor_digest() const noexcept
{
    std::uint64_t sum = 0;
    for (const auto& [name, part] : parts_) {
        sum += mix64(name + 1, part.floor);
    }
    return sum;
}

}  // namespace stillpoint::explorer
