#pragma once
// The bucket of a key in a hash map: one function for every engine, so that chains have the same lengths.

#include <cstdint>

namespace bench {

/// `buckets`: a power of two.
[[nodiscard]] inline std::uint64_t bucket_of_key(std::uint64_t key, std::uint64_t buckets) noexcept
{
    return (key * 0x9e3779b97f4a7c15u >> 20) & (buckets - 1);
}

}  // namespace bench
