#pragma once
// One function for each workload: registry.cpp lists them.

#include "workload.hpp"

namespace stillpoint::explorer {

std::unique_ptr<Workload> make_bank_transfer();
std::unique_ptr<Workload> make_linked_list();
std::unique_ptr<Workload> make_hash_map();
std::unique_ptr<Workload> make_btree();
std::unique_ptr<Workload> make_allocator_churn();
std::unique_ptr<Workload> make_handles();
std::unique_ptr<Workload> make_growth();

}  // namespace stillpoint::explorer
