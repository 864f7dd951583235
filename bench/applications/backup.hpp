#pragma once
// The input and output of dedup: a backup with many files twice, and its packed form.
//
// Packed: for each chunk either 1, the number of its compressed bytes (4 bytes) and those; or 2 and which of the chunks that
// are packed with their bytes is meant (8 bytes).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bench::backup {

inline constexpr std::byte is_new{1};
inline constexpr std::byte is_known{2};
inline constexpr std::size_t new_head_bytes = 1 + sizeof(std::uint32_t);
inline constexpr std::size_t known_bytes = 1 + sizeof(std::uint64_t);

/// Files of words, some of them again as they were.
[[nodiscard]] std::vector<std::byte> make_backup(std::size_t size_bytes);

/// As far as it can be understood. `size_bytes`: how much is expected.
[[nodiscard]] std::vector<std::byte> unpack(std::span<const std::byte> packed, std::size_t size_bytes);

}  // namespace bench::backup
