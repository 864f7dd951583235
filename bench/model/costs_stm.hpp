#pragma once
// Costs of the instrumentation of a software transactional memory on this machine.

namespace bench::model {

struct StmCosts {
    double begin_ns;
    double read_ns;
    double write_ns;
    double validate_read_ns;
    double commit_write_ns;
    double abort_ns;
};

/// From `rounds` batches, undisturbed. One thread, data of 4 MiB, a table of 2^20 locks.
[[nodiscard]] StmCosts measure_stm(int rounds);

}  // namespace bench::model
