#pragma once
// A new pool whose objects have the types of another program, as `stillpoint convert` makes it.

#include "runtime/engine.hpp"

namespace stillpoint::breeze {

/// EngineDriver::convert.
[[nodiscard]] Result<ConversionReport> convert_pool(const Pool& pool, const ConversionRequest& request,
                                                    void (*progress)(std::uint64_t done, std::uint64_t total));

}  // namespace stillpoint::breeze
