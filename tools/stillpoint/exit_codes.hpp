#pragma once
// Exit codes of the tool's own findings; a Failure's code has exit_code_for() of runtime/session.hpp.
// Numbers follow sysexits.h and the shell; docs/guide/exit-codes.md explains each.

namespace stillpoint::tool::exit_codes {

inline constexpr int ok = 0;
inline constexpr int found = 1;  ///< lint
inline constexpr int usage = 64;
inline constexpr int data_error = 65;
inline constexpr int no_input = 66;
inline constexpr int unavailable = 69;
inline constexpr int defect = 70;
inline constexpr int system_error = 71;
inline constexpr int no_space = 73;
inline constexpr int input_output = 74;
inline constexpr int in_use = 75;
inline constexpr int no_permission = 77;
inline constexpr int not_runnable = 126;
inline constexpr int program_missing = 127;

}  // namespace stillpoint::tool::exit_codes
