#pragma once
// The parts of a session that lie in its image.

#include "core/result.hpp"
#include "runtime/engine.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint {

/// Tables, heap, directory, layout, types and globals of an image that the session's engine has mapped, before anything can capture it.
/// Errors: as Heap::attach(), settle_layout(), settle_types() and restore_durable_globals(); pool_corrupt.
[[nodiscard]] Result<void> attach_image(Session& session, const RecoveryReport& report, const Options& options);

}  // namespace stillpoint
