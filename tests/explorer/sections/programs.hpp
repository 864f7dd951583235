#pragma once
// Programs with locks, each of whose sections is durable when its outermost unlock has returned; or when a wait after it has.

#include <vector>

#include "objects/object_workload.hpp"

namespace stillpoint::explorer {

[[nodiscard]] const std::vector<ObjectWorkloadEntry>& section_programs();
/// Some of them, whose sections take the way of threads=processes: records in a ring, which a scribe writes into the logs.
[[nodiscard]] const std::vector<ObjectWorkloadEntry>& scribed_programs();
/// With unlocks that do not wait: acknowledge=order.
[[nodiscard]] const std::vector<ObjectWorkloadEntry>& ordered_section_programs();
[[nodiscard]] const ObjectWorkloadEntry& section_program_called(std::string_view name);

}  // namespace stillpoint::explorer
