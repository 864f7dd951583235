#pragma once
// The worker's own command line. People use `stillpoint bench`, which starts workers.

#include <optional>
#include <string>

#include "shape.hpp"
#include "workload.hpp"

namespace bench {

struct WorkerCall {
    bool lists = false;  ///< `--list`: print what this worker can do, as JSON, and end
    const WorkloadRow* row = nullptr;
    Shape shape;
};

/// Nothing: `error` says what is wrong, in a sentence.
[[nodiscard]] std::optional<WorkerCall> parse_worker_call(int count, char** words, std::string& error);

}  // namespace bench
