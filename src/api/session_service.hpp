#pragma once
// A session of a program that is a service: a last checkpoint before SIGTERM ends the program (option on_term), and notifications of
// systemd (option notify).

#include "core/result.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint {

/// Does what the session's options say. Errors: as term_signal::take_over().
[[nodiscard]] Result<void> session_take_term(const Session& session);

/// Tells systemd that the pool is recovered, where the session's options say so.
void session_tell_ready(const Session& session) noexcept;

}  // namespace stillpoint
