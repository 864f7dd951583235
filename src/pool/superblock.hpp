#pragma once
// Reading, judging and sealing superblocks: pure functions of bytes, so that a fuzzer can feed
// them anything. Pool (pool.hpp) does the reading and writing of the file.

#include <array>
#include <cstdint>
#include <string_view>

#include "core/result.hpp"
#include "pool/superblock_layout.hpp"

namespace stillpoint {

/// The state of one copy as a whole, before its fields are examined.
enum class SuperblockState : std::uint8_t {
    good,        ///< magic and checksum hold, whatever the format version
    zero,        ///< nothing was ever written there
    unfinished,  ///< the marker of a creation that did not end
    foreign,     ///< another file's bytes: no magic
    damaged,     ///< the magic, but the checksum does not hold
    unreadable,  ///< the medium refused to read it
};

[[nodiscard]] std::string_view to_text(SuperblockState state) noexcept;

[[nodiscard]] SuperblockState judge_superblock(const layout::Superblock& copy) noexcept;

/// Both copies of a file with their verdicts.
struct SuperblockPair {
    std::array<layout::Superblock, layout::superblock_copies> copies;
    std::array<SuperblockState, layout::superblock_copies> states;
};

/// Index of the copy in force: the good one with the larger sequence number.
/// Errors: not_a_pool (foreign, or its creation was never finished), pool_corrupt (no good
///   copy, or two different ones with one sequence number), io (neither could be read).
[[nodiscard]] Result<std::size_t> choose_superblock(const SuperblockPair& pair, std::string_view path);

/// Holds every field against every other, with checked arithmetic. It does not look at the size of the
/// file. After it, every segment lies inside file_bytes and the image inside the window.
/// Errors: pool_version (a format version or a feature that is not known here), pool_corrupt.
[[nodiscard]] Result<void> validate_superblock(const layout::Superblock& superblock, std::string_view path);

/// True for 1 to 15 characters of a-z, 0-9, '-' and '_'.
[[nodiscard]] bool valid_engine_name(std::string_view name) noexcept;

[[nodiscard]] std::uint64_t superblock_checksum(const layout::Superblock& superblock) noexcept;
/// Stores the checksum: the last step before a superblock is written.
void seal_superblock(layout::Superblock& superblock) noexcept;

/// The maximum that a pool was created with.
[[nodiscard]] constexpr std::uint64_t first_maximum(const layout::Superblock& block) noexcept
{
    return block.image_bytes_first_max != 0 ? block.image_bytes_first_max : block.image_bytes_max;
}

}  // namespace stillpoint
