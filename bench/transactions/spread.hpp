#pragma once
// Numbers that look random, made of keys.

#include <cstdint>

namespace bench::transactional {

/// Each bit of the key changes about half of the bits; no two keys give the same number.
[[nodiscard]] inline std::uint64_t spread(std::uint64_t key) noexcept
{
    key = (key ^ key >> 32) * 0xd6e8feb86659fd93u;
    key = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
    return key ^ key >> 32;
}

}  // namespace bench::transactional
