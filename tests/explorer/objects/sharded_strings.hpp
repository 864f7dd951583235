#pragma once

#include <memory>

#include "objects/object_workload.hpp"

namespace stillpoint::explorer {

/// Two threads on a durable::sharded_string_map, which is made, cleared and deleted again and again.
[[nodiscard]] std::unique_ptr<ObjectWorkload> make_sharded_strings();

}  // namespace stillpoint::explorer
