#pragma once
// Costs between two threads on two CPUs.

#include <atomic>
#include <cstdint>
#include <vector>

namespace bench::model {

struct alignas(64) Line {
    std::atomic<std::uint64_t> value{0};
};

void pin_this_thread(int cpu);

/// The tenth percentile.
[[nodiscard]] double undisturbed(std::vector<double> values);

/// Nanoseconds until a thread on `other_cpu` sees a line that this thread has changed: half of a round to and fro. Batches are short, so
/// that some are not interrupted.
[[nodiscard]] double line_transfer_ns(int rounds, int other_cpu);

}  // namespace bench::model
