#pragma once
// Goes through the schedules of a scenario: all of them, up to those that cannot differ, or as many as the bounds allow.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/schedules/execution.hpp"

namespace stillpoint::schedules {

struct Bounds {
    double seconds = 1e9;              ///< of exhaustive search
    std::uint64_t states_max = UINT64_MAX;
    double random_seconds = 0;         ///< of random schedules after a search that was cut off
    std::uint64_t seed = 1;
};

struct Outcome {
    bool complete = false;             ///< every schedule was explored or is equal to one that was
    std::uint64_t schedules = 0;
    std::uint64_t states = 0;          ///< different ones
    std::uint64_t random_schedules = 0;
    double seconds = 0;
    std::string violation;             ///< empty: none
    unsigned signal_at = 0;            ///< where the signal came in it
    std::string schedule;              ///< the moves that lead to it, for replay
};

[[nodiscard]] Outcome explore(const Scenario& scenario, Model model, const Mutant* mutant, const Bounds& bounds);

/// Carries out the moves of `schedule` and prints each step. Returns what does not hold; empty: all does.
std::string replay(const Scenario& scenario, Model model, const Mutant* mutant, unsigned signal_at, const std::string& schedule);

}  // namespace stillpoint::schedules
