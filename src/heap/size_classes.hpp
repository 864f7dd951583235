#pragma once
// Size classes: which sizes blocks have, and how a 64 KiB span is cut into them.
//
// Blocks are 16 to 128 bytes in steps of 16, then four sizes per doubling, and from 4 KiB on the
// sizes that divide a span without much rest. Every size is a multiple of 16, which is the
// alignment of all blocks; blocks end where the span ends, so a block is aligned to the lowest set
// bit of its size (a power of two is aligned to itself).

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "heap/heap_layout.hpp"

namespace stillpoint::heap {

inline constexpr std::array<std::uint32_t, 39> class_sizes = {
    16,   32,   48,   64,   80,   96,   112,  128,  160,  192,  224,  256,  320,  384,  448,   512,   640,   768,   896,  1024,
    1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096, 4608, 5376, 6400, 7168, 8192, 9216, 10752, 13056, 16384, 21760, 32768};

/// Classes are numbered from 1: 0 is "no class" in every table.
inline constexpr std::uint32_t class_count = class_sizes.size();
inline constexpr std::size_t small_bytes_max = class_sizes.back();
inline constexpr std::size_t block_alignment = 16;
/// From this block size on, marks lie in the coarse table; below, in the span's head.
inline constexpr std::uint32_t coarse_block_bytes = 4096;
/// The head of a span is at least this long, so that the marks of different spans can begin in
/// different cache lines: 64 KiB-aligned heads would all meet in one cache set.
inline constexpr std::uint32_t head_bytes_min = 512;
inline constexpr std::size_t blocks_per_span_max = 4096;

/// One class, in the words that the fast paths need: 16 bytes, indexed by class.
struct SizeClass {
    std::uint32_t reciprocal;   ///< block index = (offset / 16) * reciprocal >> 24
    std::uint32_t first_block;  ///< offset of block 0 in its span
    std::uint32_t blocks;       ///< per span; 0: not a class
    std::uint32_t block_bytes;
};

inline constexpr unsigned reciprocal_shift = 24;

constexpr SizeClass make_class(std::uint32_t block_bytes)
{
    constexpr auto span = static_cast<std::uint32_t>(span_bytes);
    SizeClass made{};
    made.block_bytes = block_bytes;
    made.blocks = span / block_bytes;
    if (block_bytes < coarse_block_bytes) {
        const auto head = [](std::uint32_t marks) {
            return marks < head_bytes_min ? head_bytes_min : static_cast<std::uint32_t>(round_up(marks, 64));
        };
        while (made.blocks * block_bytes + head(made.blocks) > span) {
            --made.blocks;
        }
    }
    made.first_block = span - made.blocks * block_bytes;
    // With x = offset / 16 < 2^12 and s = block_bytes / 16, m = floor(2^24 / s) + 1 errs by less
    // than x / 2^24 < 1 / s: the quotient is exact.
    made.reciprocal = (std::uint32_t{1} << reciprocal_shift) / (block_bytes / 16) + 1;
    return made;
}

/// The classes, from 1.
inline constexpr auto size_classes = [] {
    std::array<SizeClass, 256> table{};
    for (std::uint32_t c = 1; c <= class_count; ++c) {
        table[c] = make_class(class_sizes[c - 1]);
    }
    return table;
}();

[[nodiscard]] constexpr bool has_coarse_marks(const SizeClass& size_class) noexcept { return size_class.block_bytes >= coarse_block_bytes; }

/// Alignment that every block of the class has.
[[nodiscard]] constexpr std::size_t class_alignment(std::uint32_t size_class) noexcept
{
    const std::uint32_t size = size_classes[size_class].block_bytes;
    return size & (~size + 1);
}

namespace lookup_tables {
constexpr std::uint8_t smallest_class_for(std::size_t size_bytes)
{
    std::uint8_t c = 1;
    while (class_sizes[c - 1u] < size_bytes) {
        ++c;
    }
    return c;
}
template <std::size_t unit, std::size_t entries>
constexpr auto make_lookup()
{
    std::array<std::uint8_t, entries> table{};
    for (std::size_t i = 0; i < entries; ++i) {
        table[i] = smallest_class_for(i * unit);
    }
    return table;
}
inline constexpr std::size_t fine_bytes_max = 4096;
inline constexpr auto fine_lookup = make_lookup<16, fine_bytes_max / 16 + 1>();
inline constexpr auto coarse_lookup = make_lookup<256, small_bytes_max / 256 + 1>();
}  // namespace lookup_tables

/// A tag byte (heap_state.hpp) is a class, 1 to class_count, or of a kind of typed spans, from typed_tag on. A heap has a table of
/// the classes of all of them, as long as this one; it is filled from this one.
inline constexpr std::uint32_t typed_tag = 0x80;
inline constexpr std::uint32_t typed_count_max = 63;
/// Lists and bins are indexed by tags up to here.
inline constexpr std::uint32_t tag_end = typed_tag + typed_count_max;

/// The smallest class that holds size_bytes <= small_bytes_max.
[[nodiscard]] inline std::uint32_t class_for(std::size_t size_bytes) noexcept
{
    if (size_bytes <= lookup_tables::fine_bytes_max) [[likely]] {
        return lookup_tables::fine_lookup[(size_bytes + 15) / 16];
    }
    return lookup_tables::coarse_lookup[(size_bytes + 255) / 256];
}

/// How many blocks of a class a thread keeps to itself: 64 KiB of them, but at least 8 and at
/// most 512. Half of that moves at a time. Batches of 64 and more keep threads apart: 64
/// marks are one cache line.
[[nodiscard]] constexpr std::uint32_t cache_capacity(const SizeClass& size_class) noexcept
{
    const std::uint32_t blocks = static_cast<std::uint32_t>(span_bytes) / size_class.block_bytes;
    return blocks < 8 ? 8 : blocks > 512 ? 512 : blocks;
}
[[nodiscard]] constexpr std::uint32_t transfer_batch(const SizeClass& size_class) noexcept { return cache_capacity(size_class) / 2; }

}  // namespace stillpoint::heap
