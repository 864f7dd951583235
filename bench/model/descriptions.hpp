#pragma once
// The machine and the workload that a run is made of: JSON files with a source for each number.

#include <string>
#include <vector>

namespace bench::model {

struct Machine {
    std::string name;
    std::string says;
#define MACHINE_COST(cost, least) double cost = least;
#include "machine.inc"
#undef MACHINE_COST
};

/// Lines that transactions access with equal probability. The whole of a workload's conflicts: two accesses of concurrent transactions
/// to one line, at least one of them a write.
struct Area {
    double lines;
    double read_lines;     ///< of a transaction, only read
    double written_lines;  ///< of a transaction
};

struct Workload {
    std::string name;
    std::string says;
#define WORKLOAD_FACT(fact, least) double fact = least;
#include "workload.inc"
#undef WORKLOAD_FACT
    std::vector<Area> areas;
};

/// These throw std::runtime_error where the file is not a complete description, or has something that the model does not know.
[[nodiscard]] Machine read_machine(const std::string& path);
[[nodiscard]] Workload read_workload(const std::string& path);

}  // namespace bench::model
