#pragma once
// How a measured process ends when it cannot go on: one line on standard error, and an exit code that the driver shows.

#include <string_view>

namespace bench {

/// The workload's data do not fit: exit code 71 (EX_OSERR).
[[noreturn]] void out_of_memory(std::string_view why = {});

/// The system or the engine under test failed: exit code 70 (EX_SOFTWARE).
[[noreturn]] void give_up(std::string_view why);
/// As give_up(why), with another exit code.
[[noreturn]] void give_up(std::string_view why, int exit_code);

}  // namespace bench
