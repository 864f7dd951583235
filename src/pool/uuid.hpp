#pragma once
// The identity of a pool.

#include <array>
#include <cstdint>
#include <string>

#include "core/result.hpp"

namespace stillpoint {

using Uuid = std::array<std::uint8_t, 16>;

/// Text such as "123e4567-e89b-42d3-a456-426614174000".
[[nodiscard]] std::string to_text(const Uuid& uuid);

/// A random one (RFC 4122, version 4). Errors: io.
[[nodiscard]] Result<Uuid> draw_uuid();

}  // namespace stillpoint
