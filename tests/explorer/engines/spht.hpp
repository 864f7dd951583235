#pragma once
// The bytes of spht that exist twice, or are one word of state.

#include <cstdint>
#include <string_view>
#include <vector>

#include "pool/pool.hpp"

namespace stillpoint::explorer::spht_places {

/// The words of option `protocol` but for the engine's own.
inline constexpr std::string_view compared_protocols[] = {"nv-htm", "dudetm", "crafty", "cc-htm", "pstm"};

/// The word that says up to where transactions are durable, where the medium is byte-addressable: an older one is a state that was.
[[nodiscard]] std::uint64_t marker_offset(const Pool& pool) noexcept;
/// Where the headers of the records lie that end a log, but for the marker's own: a log does not tell that it has lost its end.
[[nodiscard]] std::vector<std::uint64_t> ends_of_logs(const Pool& pool, std::uint64_t durable_epoch);
/// A replay point, or the header of a log chunk: the pool has another copy.
[[nodiscard]] bool has_copy(const Pool& pool, std::uint64_t byte) noexcept;

}  // namespace stillpoint::explorer::spht_places
