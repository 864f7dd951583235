#pragma once
// The one flush loop.

#include <cstdint>

#include "arch/arch.hpp"

namespace stillpoint::arch {

/// The number of lines that overlap [offset, offset + size).
constexpr std::size_t lines_in(std::uintptr_t offset, std::size_t size, std::size_t line_bytes) noexcept
{
    return size == 0 ? 0 : (offset + size - 1) / line_bytes - offset / line_bytes + 1;
}

/// Writes back every line that overlaps [address, address + size). Not durable until fence():
/// the two are separate because engines batch, one fence per record and not one per field.
/// Returns the number of lines written back, for counters and golden counts.
template <Arch A>
std::size_t flush(A& arch, const void* address, std::size_t size) noexcept
{
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    // Counted from the last byte, not from one past it: an end on a line boundary must not write
    // back a line that the caller never wrote.
    const std::size_t lines = lines_in(begin, size, A::line_bytes);
    const std::uintptr_t first = begin & ~(std::uintptr_t{A::line_bytes} - 1);
    for (std::size_t i = 0; i < lines; ++i) {
        arch.write_back(reinterpret_cast<const void*>(first + i * A::line_bytes));
    }
    return lines;
}

}  // namespace stillpoint::arch
