#pragma once
// The machine and the workload that a run is made of: JSON files with a source for each number.

#include <cstddef>
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

/// Data that transactions access with equal probability, in units: a row, a node, the sums of a cluster.
struct Area {
    std::string name;
    double units;
    double lines_of_unit;
};

/// Accesses of a transaction to an area. All of a workload's conflicts come from here: two accesses of concurrent transactions to one
/// unit, at least one of them a write.
struct Accesses {
    std::size_t area;
    double read_units;  ///< only read
    double written_units;
};

/// Transactions that are alike. One that writes no words is read-only.
struct TransactionClass {
    std::string name;
#define CLASS_FACT(fact, least) double fact = least;
#include "workload.inc"
#undef CLASS_FACT
    std::vector<Accesses> accesses;
};

struct Workload {
    std::string name;
    std::string says;
    std::vector<Area> areas;
    std::vector<TransactionClass> classes;
};

/// These throw std::runtime_error where the file is not a complete description, or has something that the model does not know.
[[nodiscard]] Machine read_machine(const std::string& path);
/// Another value for a cost: "name=value".
void change_machine(Machine& machine, const std::string& word);
[[nodiscard]] Workload read_workload(const std::string& path);

}  // namespace bench::model
