#pragma once

#include <memory>

#include "objects/object_workload.hpp"

namespace stillpoint::explorer {

/// One object whose class has other methods in a pool's first run than in those that follow, and than for the process that recovers it.
[[nodiscard]] std::unique_ptr<ObjectWorkload> make_changed_methods();

}  // namespace stillpoint::explorer
