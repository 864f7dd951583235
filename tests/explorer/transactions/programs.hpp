#pragma once

#include <string_view>
#include <vector>

#include "objects/object_workload.hpp"

namespace stillpoint::explorer {

/// Programs over the parts of parts.hpp, in transactions of the engine spht.
[[nodiscard]] const std::vector<ObjectWorkloadEntry>& transaction_programs();

/// Some of them on another executor than the usual one: `executor` is its word (option executor), which the list below has.
[[nodiscard]] const std::vector<ObjectWorkloadEntry>& transaction_programs_on(std::string_view executor);
inline constexpr std::string_view other_executors[] = {"simulated", "norec", "tinystm"};

/// The one of that name, which exists.
[[nodiscard]] const ObjectWorkloadEntry& transaction_program_called(std::string_view name);

/// Readers believe what the paper's rule tells them: what it comes to is lost. Not among the programs above.
[[nodiscard]] const ObjectWorkloadEntry& readers_that_do_not_wait();

}  // namespace stillpoint::explorer
