#pragma once
// The result of recovery from a crash image, and whether that is a state the crash may leave.

#include <cstdint>
#include <string>
#include <vector>

#include "history.hpp"
#include "sim/crash_model.hpp"
#include "program.hpp"

namespace stillpoint::explorer {

struct Recovered {
    enum class Kind : std::uint8_t {
        nothing,  ///< no file, or one whose creation was never finished: it holds no data, and says so
        refused,  ///< an error
        state,
    };
    Kind kind = Kind::nothing;
    std::uint64_t epoch = 0;       ///< 0: a pool to which nothing was committed
    std::uint64_t operations = 0;
    std::uint64_t model_digest = 0;
    std::uint64_t image_digest = 0;
    std::vector<std::uint64_t> page_digests;  ///< may be left out; they name the page that is wrong
    PartDigests parts;             ///< of durable objects, as a program found them
    std::string problem;           ///< the error, or what is broken inside the state
};

/// Recovers an image without writing to it: by the engine's own code, as `stillpoint check` does. Then looks at heap,
/// directory and workload in the recovered memory.
[[nodiscard]] Recovered recover(const ProgramPlan& plan, const sim::CrashImage& image);

/// The error in a recovered state after a crash of `history`, or "".
[[nodiscard]] std::string judge(const Recovered& recovered, const History& history);

}  // namespace stillpoint::explorer
