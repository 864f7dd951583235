#pragma once

namespace stillpoint::sim {

/// From now on what the real media of this process do is recorded, while a trace is (`recording`). Their files must be built with the
/// canaries' switches.
void trace_media() noexcept;

}  // namespace stillpoint::sim
