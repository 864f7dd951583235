#pragma once
// One run: a system, a workload, a machine and a number of threads give a throughput and where the time went.

#include <cstdint>
#include <string_view>

#include "protocol.hpp"

namespace bench::model {

struct RunResult {
    std::string_view system;
    int threads = 0;
    double transactions_per_s = 0;
    Counters total;      ///< of all threads, after the warm-up
    double wall_ns = 0;  ///< simulated, after the warm-up
    Counters whole;      ///< of all threads, from the beginning
    /// Attempts at the end that had neither committed nor aborted: whole.attempts is the sum of these, the committed and the aborted.
    std::uint64_t unfinished = 0;

    [[nodiscard]] double share(Activity activity) const;
    /// Share of the time inside transactions, as SPHT's Figure 4c has it.
    [[nodiscard]] double share_inside(Activity activity) const;
    [[nodiscard]] double abort_rate() const;
    [[nodiscard]] std::uint64_t aborted() const;
};

/// `transactions` committed ones, of all threads together; a tenth of that before is warm-up.
[[nodiscard]] RunResult run_model(const ProtocolKind& kind, const Machine& machine, const Workload& workload, int threads,
                                  std::uint64_t transactions, std::uint64_t seed);

}  // namespace bench::model
