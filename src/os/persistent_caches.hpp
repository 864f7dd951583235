#pragma once
// Whether this machine's CPU caches survive a power cut (eADR, CXL GPF), as the kernel tells.

namespace stillpoint::os {

/// True if there are NVDIMM or CXL regions and every one says that its persistence domain begins at the
/// CPU caches. Which of them a file lies on is not asked: one exception makes the answer no.
/// `devices` is where the kernel lists the regions; tests pass their own.
[[nodiscard]] bool caches_are_persistent(const char* devices = "/sys/bus/nd/devices") noexcept;

}  // namespace stillpoint::os
