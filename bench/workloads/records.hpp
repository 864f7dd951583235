#pragma once
// How many records a workload has whose value size can be chosen.

#include <algorithm>
#include <cstdint>

#include "../worker/shape.hpp"

namespace bench {

/// A million; fewer where their values would take more than 128 MB: every configuration of a run has its own copy at the same
/// time, and some have three.
inline std::uint64_t records_of(const Shape& shape)
{
    return shape.size_or(std::min<std::uint64_t>(1'000'000, 128'000'000 / shape.value_bytes), 1000);
}

}  // namespace bench
