#pragma once
// The explorer's command line.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

namespace stillpoint::explorer {

struct Arguments {
    std::uint64_t states = 100'000;
    double seconds = 0;
    std::uint64_t seed = 1;
    unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
    std::string campaign;
    std::string canary;
    bool canaries = false;
    std::uint64_t each = 1;
    bool list = false;
    bool counts = false;
    std::string golden;
    bool json = false;
    bool quiet = false;
    std::string scratch;
};

/// An exit code: nothing is to be explored, and why has been said.
[[nodiscard]] std::optional<int> read_arguments(int count, char** words, Arguments& arguments);

}  // namespace stillpoint::explorer
