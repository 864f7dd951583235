#pragma once
// Opens a pool together with its replica elsewhere. What each side has decides which one the other is brought up to; where each has what
// the other lacks, nothing is changed and the opening is refused.

#include <memory>

#include "media/open.hpp"
#include "media/replica/replicated_medium.hpp"

namespace stillpoint {

struct ReplicaOptions {
    std::string name;  ///< rados://CEPHPOOL/NAME
    ReplicaLevel level = ReplicaLevel::remote;
    std::uint32_t lag_ms_max = 5000;
    std::uint64_t buffer_bytes = 256 * mib;
    std::uint64_t (*newest_epoch)(void* context) = nullptr;
    void (*tell)(void* context, const ReplicaFigures& figures) = nullptr;
    void* context = nullptr;
};

/// Opens both; makes the one that is missing of the other. `local` says the pool here, and how the replica is opened (take_over, lease).
/// Errors: pool_missing (both are); pool_locked (another process has one of them); diverged: each has what the other lacks;
///   unsupported (a medium that is not written by blocks, or a pool whose durability is the process's); those of open_medium().
[[nodiscard]] Result<std::unique_ptr<ReplicatedMedium>> open_replicated(const MediumOptions& local, const ReplicaOptions& replica);

/// Makes both, where neither is there. Errors: those of create_medium().
[[nodiscard]] Result<std::unique_ptr<ReplicatedMedium>> create_replicated(const MediumOptions& local, const ReplicaOptions& replica,
                                                                          std::uint64_t size_bytes);

}  // namespace stillpoint
