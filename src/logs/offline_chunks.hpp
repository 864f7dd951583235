#pragma once
// The logs of a pool that is not open, for tools.

#include <cstdint>
#include <vector>

#include "core/result.hpp"
#include "logs/log_scan.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"

namespace stillpoint::logs {

/// The chunks of a pool that is not open, read into memory.
class OfflineChunks {
public:
    /// Errors: no_memory, io.
    [[nodiscard]] Result<void> read(const Pool& pool);
    [[nodiscard]] LogBytes bytes() const noexcept { return {chunks_.data(), static_cast<std::uint32_t>(chunks_.size())}; }

private:
    os::ReservedArray<std::byte> bytes_;
    std::vector<const std::byte*> chunks_;
};

/// Applies what the logs have to the image at `base`. Errors: pool_corrupt, no_memory.
[[nodiscard]] Result<void> replay_offline(const Pool& pool, const LogBytes& bytes, const LogIndex& index, std::byte* base,
                                          std::uint64_t image_bytes);

}  // namespace stillpoint::logs
