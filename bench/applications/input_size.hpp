#pragma once
// The size of an application's input: the default, or what --size asks for where the application can do that.

#include <cstdint>
#include <string>

#include "../harness/ending.hpp"
#include "../worker/shape.hpp"

namespace bench {

struct SizeLimits {
    std::uint64_t minimum;
    std::uint64_t maximum;
    const char* what;  ///< is counted: "nodes"
};

/// Ends the process where the size asked for is out of the limits.
inline std::uint64_t input_size(const Shape& shape, std::uint64_t usual, std::uint64_t smoke, const SizeLimits& limits)
{
    const std::uint64_t size = shape.size_or(usual, smoke);
    if (size < limits.minimum || size > limits.maximum) {
        give_up("--size " + std::to_string(size) + ": this workload takes " + std::to_string(limits.minimum) + " to " +
                std::to_string(limits.maximum) + " " + limits.what);
    }
    return size;
}

}  // namespace bench
