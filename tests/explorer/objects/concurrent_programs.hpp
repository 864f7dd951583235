#pragma once

#include <memory>

#include "objects/object_workload.hpp"

namespace stillpoint::explorer {

/// Two threads on a map with a lock for each shard, or one of them on another object, beside snapshots.
[[nodiscard]] std::unique_ptr<ObjectWorkload> make_concurrent();
/// Bursts of operations of two threads, of which a crash leaves any, with single ones, snapshots and another object's in between: what one
/// run leaves in chunks of the log is there for the next.
[[nodiscard]] std::unique_ptr<ObjectWorkload> make_overtaking();
/// Three threads on one queue, whose operations are combined, beside operations that are not, and snapshots.
[[nodiscard]] std::unique_ptr<ObjectWorkload> make_combining();

}  // namespace stillpoint::explorer
