#pragma once
// A larger maximum for a pool at rest: what `stillpoint grow` and `stillpoint copy --pool-max` share.

#include <cstdint>
#include <functional>
#include <string>

#include "core/result.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

struct RaisedMaximum {
    std::string engine;
    std::uint64_t bytes_before;
    std::uint64_t bytes;
};

/// Raises it durably; a kill in the middle leaves the old one or the new one. Nothing is done where it is `image_bytes_max` already.
/// Errors: as open_pool_to_change; pool_engine (the tables of its pools cannot be made longer), those of Pool::raise_maximum.
[[nodiscard]] Result<RaisedMaximum> raise_maximum(const std::string& path, std::uint64_t image_bytes_max);

/// As the other, in a pool that is open to be changed; `path` is for messages.
[[nodiscard]] Result<RaisedMaximum> raise_maximum(OpenedPool& opened, const std::string& path, std::uint64_t image_bytes_max);

/// Takes the value of --pool-max into `maximum_mb`, which outlives it: the sentence of a usage error, or nothing.
[[nodiscard]] std::function<std::string(const std::string&)> maximum_taker(std::uint64_t& maximum_mb);

}  // namespace stillpoint::tool
