#pragma once
// The log chunks of a pool that is not open, read into memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "logs/log_bytes.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"

namespace stillpoint::spht {

class OfflineChunks {
public:
    /// Once. Errors: io, no_memory.
    [[nodiscard]] Result<void> read(const Pool& pool);
    [[nodiscard]] logs::LogBytes bytes() const noexcept { return {chunks_.data(), static_cast<std::uint32_t>(chunks_.size())}; }

private:
    os::ReservedArray<std::byte> bytes_;
    std::vector<const std::byte*> chunks_;  ///< in the order of their numbers, which positions and links name
};

}  // namespace stillpoint::spht
