#pragma once
// Which chunks of the logs are in use, and in what order a log fills its own.

#include <cstdint>
#include <tuple>
#include <vector>

#include "logs/log_bytes.hpp"

namespace stillpoint::logs {

struct ChunkInUse {
    std::uint32_t chunk;
    ChunkHeader header;  ///< the later one of both
    bool has_both;
    [[nodiscard]] auto log_key() const noexcept { return std::tuple(header.run, header.log); }
    [[nodiscard]] auto key() const noexcept { return std::tuple(header.run, header.log, header.index); }
};

/// By run, log, place in the log and use. Either header serves: both are durable before the chunk has a record that was acknowledged. A
/// crash between the two leaves one of the chunk's earlier use. Throws std::bad_alloc.
[[nodiscard]] std::vector<ChunkInUse> chunks_in_use(const LogBytes& bytes);

}  // namespace stillpoint::logs
