#pragma once
// Unit types and the sizes that formats and layers share.

#include <cstddef>
#include <cstdint>

#include "stillpoint/stillpoint.h"

namespace stillpoint {

/// Pages are the unit of tracking and of both durable copies. Fixed by the pool format.
inline constexpr std::size_t page_bytes = 4096;
inline constexpr unsigned page_shift = 12;
inline constexpr std::size_t cache_line_bytes = 64;

inline constexpr std::uint64_t kib = 1024;
inline constexpr std::uint64_t mib = 1024 * kib;
inline constexpr std::uint64_t gib = 1024 * mib;

/// Index of a page of the image (the durable memory), counted from the pool's base address.
enum class ImagePage : std::uint64_t {};
/// Index of a 4 KiB page of the pool file.
enum class FilePage : std::uint64_t {};

constexpr std::uint64_t raw(ImagePage page) noexcept { return static_cast<std::uint64_t>(page); }
constexpr std::uint64_t raw(FilePage page) noexcept { return static_cast<std::uint64_t>(page); }
constexpr std::uint64_t byte_offset(FilePage page) noexcept { return raw(page) * page_bytes; }

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) noexcept { return (value + unit - 1) / unit * unit; }

/// The window of durable addresses.
inline constexpr std::uintptr_t window_base = SP_WINDOW_INDEX << SP_WINDOW_SHIFT;
inline constexpr std::uint64_t window_bytes = std::uint64_t{1} << SP_WINDOW_SHIFT;

}  // namespace stillpoint
