#pragma once
// How a program was compiled, as its file says: the records of nvhooks_abi.h in it.

#include <string>
#include <vector>

namespace stillpoint::tool {

/// The names of the layers that units of the ELF file were compiled for, each once; none where it is not instrumented, or
/// no 64-bit ELF file, or damaged.
[[nodiscard]] std::vector<std::string> layers_in(const std::string& path);

}  // namespace stillpoint::tool
