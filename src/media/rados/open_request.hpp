#pragma once
// The request to open that says what a medium's options say.

#include <cstdint>

#include "core/result.hpp"
#include "media/open.hpp"
#include "media/rados/agent_protocol.hpp"

namespace stillpoint::rados {

/// `size_bytes` is the request's. Errors: invalid_argument (the path does not name a pool in Ceph).
[[nodiscard]] Result<OpenRequest> request_for(const MediumOptions& options, Mode mode, std::uint64_t size_bytes);

}  // namespace stillpoint::rados
