#pragma once
// A new pool with the objects of another one, as `stillpoint compact` and `stillpoint convert` make it. The old pool is only read; the new
// file has no name until it is written, synced and checked.

#include <cstdint>
#include <memory>

#include "engines/breeze/breeze_pool.hpp"
#include "engines/breeze/compacted_image.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::breeze {

using CopyProgress = void (*)(std::uint64_t done, std::uint64_t total);

/// As open_sound_copy(); a damaged pool is refused with the next step. `what` happens to pools: "compacted".
[[nodiscard]] Result<std::unique_ptr<BreezePool>> open_to_copy(const Pool& pool, const char* what, CopyProgress progress);

/// Counts all objects, also those that cannot be reached.
[[nodiscard]] CompactionFigures count_before(const Pool& pool, PoolParts& parts);

/// The bytes of the image. Errors: invalid_argument (the objects have no room in the size that was asked for).
[[nodiscard]] Result<std::uint64_t> size_of_new(const Pool& pool, const CompactedImage& image, const CompactionRequest& request);

/// An empty pool of the same format and durability, whose file has no name yet where the file system has such files.
[[nodiscard]] Result<Pool> create_new(const Pool& pool, const CompactionRequest& request, std::uint64_t image_bytes, std::uintptr_t base);

/// Checks the new pool as `stillpoint check` would, and gives its file its name. Errors: pool_corrupt; as open_sound_copy(); io.
[[nodiscard]] Result<void> check_and_publish(Pool& made, std::uint64_t objects, CopyProgress progress);

}  // namespace stillpoint::breeze
