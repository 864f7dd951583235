#pragma once
// Programs with locks, each of whose sections is durable when its outermost unlock has returned.

#include <vector>

#include "objects/object_workload.hpp"

namespace stillpoint::explorer {

[[nodiscard]] const std::vector<ObjectWorkloadEntry>& section_programs();
[[nodiscard]] const ObjectWorkloadEntry& section_program_called(std::string_view name);

}  // namespace stillpoint::explorer
