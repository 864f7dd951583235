#pragma once
// One function for each workload: registry.cpp lists them.

#include "workload.hpp"

namespace stillpoint::explorer {

WorkloadMakers bank_transfer();
WorkloadMakers linked_list();
WorkloadMakers hash_map();
WorkloadMakers btree();
WorkloadMakers allocator_churn();
WorkloadMakers handles();
WorkloadMakers growth();
WorkloadMakers reused_locks();
WorkloadMakers kernel_stores();

}  // namespace stillpoint::explorer
