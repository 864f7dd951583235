#pragma once
// The program that `run` is to start: found as a shell would, and examined before anything happens,
// so that what cannot be run durably is refused with its reason and no pool is touched.

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace stillpoint::tool {

struct Refusal {
    int exit_code;        ///< of exit_codes.hpp; 126 or 127 for programs, as shells have it
    std::string message;  ///< what is wrong and what to do
};

/// The path of the program that `name` means: itself where it has a slash, otherwise the first match in PATH.
/// Refuses what is missing (127), and what is not a file or not executable (126).
[[nodiscard]] tl::expected<std::string, Refusal> find_program(std::string_view name);

/// Whether the dynamic loader will load a preloaded library into `path`. Refuses (126): statically linked
/// programs, other architectures, another C library, set-uid, set-gid, file capabilities, `stillpoint`
/// itself, and files that are neither ELF nor a script. A script is judged by its interpreter.
[[nodiscard]] tl::expected<void, Refusal> examine_program(const std::string& path);

}  // namespace stillpoint::tool
