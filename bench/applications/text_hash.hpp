#pragma once
// The hash of a word, made letter by letter as it is read: FNV-1a, 64 bits.

#include <cstdint>
#include <string_view>

namespace bench {

inline constexpr std::uint64_t empty_text_hash = 0xcbf29ce484222325u;

[[nodiscard]] constexpr std::uint64_t hash_with(std::uint64_t hash, char letter) noexcept
{
    return (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
}

[[nodiscard]] constexpr std::uint64_t hash_of(std::string_view text) noexcept
{
    std::uint64_t hash = empty_text_hash;
    for (const char letter : text) {
        hash = hash_with(hash, letter);
    }
    return hash;
}

}  // namespace bench
