#pragma once
// Which messages of the library are told. Where they go: runtime/message_queue.hpp.

#include "os/log.hpp"
#include "runtime/options.hpp"

namespace stillpoint {

/// The option log_level, and quiet.
[[nodiscard]] os::Severity least_severity_of(const Options& options) noexcept;

}  // namespace stillpoint
