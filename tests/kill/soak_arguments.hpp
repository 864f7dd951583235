#pragma once
// The command line of the soak's program; soak_program.cpp explains it.

#include <cstdint>
#include <string_view>

namespace soak {

struct Arguments {
    const char* notes = nullptr;
    unsigned threads = 3;
    std::uint64_t operations = 0;
    std::uint64_t phases = 3;
    bool verify_only = false;
    bool report = false;
    bool rings = false;
    const char* acknowledged = nullptr;  ///< what a machine that is gone was told
    std::string_view defect = "none";
    std::string_view expect;  ///< empty: any kind of start
};

/// False: not of that form.
[[nodiscard]] bool parse(int argc, char** argv, unsigned threads_max, Arguments& arguments);

}  // namespace soak
