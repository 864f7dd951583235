#pragma once
// systemd's notifications (sd_notify), by its own library, which is loaded when it is needed: programs do not depend on it.

#include "core/result.hpp"

namespace stillpoint::os {

/// Loads the library where NOTIFY_SOCKET is set. False: there is no service manager to tell. Errors: unsupported (libsystemd.so.0 cannot
/// be loaded). Not inside an intercepted call.
[[nodiscard]] Result<bool> find_service_manager();

/// As sd_notify: lines as "READY=1". Nothing where none was found, and in a child made by fork.
void tell_service_manager(const char* state) noexcept;

}  // namespace stillpoint::os
