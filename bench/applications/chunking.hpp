#pragma once
// Content-defined chunks, and what tells two of them apart.

#include <cstddef>
#include <cstdint>
#include <span>

namespace bench {

inline constexpr std::size_t chunk_bytes_min = 1024;
inline constexpr std::size_t chunk_bytes_max = 16384;

/// How long the chunk at the beginning of `data` is; 0: there is no data. A chunk ends where the last 64 bytes have a certain hash
/// (a gear hash: each byte's number is added and shifted out again), so the same content is cut at the same places, wherever it stands.
[[nodiscard]] std::size_t first_chunk_bytes(std::span<const std::byte> data) noexcept;

/// 128 bits; chunks with the same fingerprint are taken for the same.
struct Fingerprint {
    std::uint64_t low;
    std::uint64_t high;
    bool operator==(const Fingerprint&) const = default;
};
[[nodiscard]] Fingerprint fingerprint_of(std::span<const std::byte> chunk) noexcept;

}  // namespace bench
