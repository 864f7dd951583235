#pragma once
// Sums that the reader and the writer of increments compute alike.

#include <cstdint>

#include "media/increment_layout.hpp"

namespace stillpoint {

[[nodiscard]] std::uint64_t increment_checksum(const layout::IncrementHeader& header) noexcept;
/// Bytes between the header and the first changed page. No count in `header` is more than 2^32.
[[nodiscard]] std::uint64_t index_bytes_of(const layout::IncrementHeader& header) noexcept;

}  // namespace stillpoint
