#pragma once
// Reads and writes of a file that go on where the kernel did a part only.

#include <cstddef>
#include <cstdint>

namespace stillpoint {

/// errno, or 0. Reads up to `size` bytes; `got` is less at the file's end.
[[nodiscard]] int read_all(int file, std::byte* bytes, std::size_t size, std::uint64_t offset, std::size_t& got) noexcept;
/// errno, or 0: all bytes are handed to the kernel. A limit of the file's size (RLIMIT_FSIZE) is EFBIG and no signal.
[[nodiscard]] int write_all(int file, const std::byte* bytes, std::size_t size, std::uint64_t offset) noexcept;

}  // namespace stillpoint
