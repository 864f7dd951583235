#pragma once
// Salvage of a damaged pool: checksums cover the image's own tables and nothing after them. The heap's tables and the program's objects lie
// in the file as they lie in memory, and a line of them is stored at any time; so no checksum of them could hold while a program runs.

#include "pool/pool.hpp"
#include "runtime/salvage.hpp"

namespace stillpoint::respct {

/// EngineDriver::salvage: each page of the tables is the newest copy that verifies, else the older one, else zero; all other pages stay as
/// the file has them, and are not proved. Errors: pool_corrupt (no commit record is valid), io, no_space, no_memory.
[[nodiscard]] Result<SalvageReport> salvage_pool(Pool& pool);

}  // namespace stillpoint::respct
