#pragma once
// Keys, and values that show whether they are whole and belong to their key.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace bench {

/// Keys are spread over 64 bits, so that neighbours in the order of filling are not neighbours in a tree.
inline std::uint64_t key_number(std::uint64_t number) noexcept { return (number + 1) * 0x9e3779b97f4a7c15u; }

inline constexpr std::size_t value_stride_bytes = 64;

/// One word, made of the key and `version`, in each 64 bytes and at the end. A version makes other bytes: no engine may find
/// that nothing has changed. value.size(): at least 8.
inline void make_value(std::span<std::byte> value, std::uint64_t key, std::uint64_t version) noexcept
{
    const std::uint64_t word = (key & ~std::uint64_t{0xffff}) | (version & 0xffff);
    for (std::size_t at = 0; at + sizeof word <= value.size(); at += value_stride_bytes) {
        std::memcpy(value.data() + at, &word, sizeof word);
    }
    std::memcpy(value.data() + value.size() - sizeof word, &word, sizeof word);
}

/// The version that make_value() was given, modulo 65536.
inline std::uint64_t version_of(std::span<const std::byte> value) noexcept
{
    std::uint64_t word = 0;
    std::memcpy(&word, value.data(), sizeof word);
    return word & 0xffff;
}

/// False: these are not the bytes of one make_value() for this key.
inline bool is_value_of(std::span<const std::byte> value, std::uint64_t key) noexcept
{
    std::uint64_t first = 0;
    std::memcpy(&first, value.data(), sizeof first);
    if ((first & ~std::uint64_t{0xffff}) != (key & ~std::uint64_t{0xffff})) {
        return false;
    }
    for (std::size_t at = 0; at + sizeof first <= value.size(); at += value_stride_bytes) {
        if (std::memcmp(value.data() + at, &first, sizeof first) != 0) {
            return false;
        }
    }
    return std::memcmp(value.data() + value.size() - sizeof first, &first, sizeof first) == 0;
}

}  // namespace bench
