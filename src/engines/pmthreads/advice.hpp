#pragma once
// Says in a sentence why a run is slower than it need be, and which of tracker, interval and layout would help, where its figures show one
// of the known reasons. The table "Slow? Try" of docs/guide/pmthreads.md has the same reasons, and those that no figure shows.

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/statistics.hpp"

namespace stillpoint::pmthreads {

/// The values of statistic `tracker`.
enum class TrackerNumber : std::uint64_t { unknown, uffd, mprotect, hooks };

/// Number of the tracker of that name, as option `tracker` has it.
[[nodiscard]] TrackerNumber number_of_tracker(std::string_view name) noexcept;

/// How much is too much, each for a whole run or for a mean checkpoint.
struct AdviceBounds {
    static constexpr std::uint64_t checkpoints_min = 10;  ///< before them a run has shown nothing
    static constexpr std::uint64_t stop_p99_ns = 20'000'000;
    static constexpr std::uint64_t pages_of_a_large_epoch = 4096;
    static constexpr std::uint64_t faults_of_mprotect = 256;
    static constexpr std::uint64_t faults_of_uffd = 8192;
};

/// The weightiest reason; empty: the figures show none. `page` may be that of another process.
[[nodiscard]] std::string advice(const Statistics& page);

}  // namespace stillpoint::pmthreads
