#pragma once
// Calls of the program that wait for a checkpoint of the open session.

#include "core/result.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint {

/// The check that every call that waits for an epoch asks first. Errors: not_open, detached, inside_fase.
[[nodiscard]] Result<Session*> session_to_wait_in();

/// Calls by which something is to become durable ask this one. Errors: also pool_read_only (option damaged=read-only).
[[nodiscard]] Result<Session*> session_to_make_durable();

/// sp_checkpoint's work. Errors: as above, and as Engine::checkpoint_now().
[[nodiscard]] Result<void> take_checkpoint();

}  // namespace stillpoint
