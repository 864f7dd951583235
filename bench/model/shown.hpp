#pragma once
// Runs what a command line asks for, and shows the results: tables for people, JSON for programs.

#include <cstdint>
#include <string>
#include <vector>

namespace bench::model {

struct Settings {
    std::string machine = "optane_two_sockets";
    std::vector<std::string> changes;  ///< of the machine, as name=value
    std::string workload = "vacation_low";
    std::vector<std::string> systems;
    std::vector<int> threads{1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64};
    std::uint64_t transactions = 20'000;
    std::uint64_t seed = 1;
    std::string json;
    std::string validate;  ///< a file of measured throughputs
    bool shows_limits = false;
};

/// The exit code. Throws std::runtime_error where a description or a name is wrong.
int show(const Settings& settings);

}  // namespace bench::model
