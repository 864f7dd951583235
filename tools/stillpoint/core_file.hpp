#pragma once
// An ELF core file of memory alone, without threads: a debugger then shows that memory at its addresses.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.hpp"
#include "os/descriptor.hpp"

namespace stillpoint::tool {

struct CoreSegment {
    std::uint64_t address;
    std::span<const std::byte> bytes;
};

/// The file has no name, so that nothing is left of it whatever happens. Zeroes take no room. `folder` is where it takes the rest.
/// Errors: no_space, io.
[[nodiscard]] Result<os::Descriptor> write_core_file(const char* folder, const std::vector<CoreSegment>& segments);

}  // namespace stillpoint::tool
