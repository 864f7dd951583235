#pragma once
// Files through pipes.

#include <cstdint>
#include <string>

#include "core/result.hpp"
#include "os/descriptor.hpp"

namespace stillpoint::tool {

/// Sends the first `bytes` of a file to standard output. Errors: io.
[[nodiscard]] Result<void> send_to_output(int file, std::uint64_t bytes);

/// Standard input, up to its end, in a file of the folder that has no name, so that nothing is left when the command is
/// killed. Errors: unsupported (the file system has no unnamed files), no_space, io.
[[nodiscard]] Result<os::Descriptor> keep_input(const std::string& folder);

}  // namespace stillpoint::tool
