#pragma once
// Waits for a cluster that is full, or of which too few OSDs run: says so once, and once more where the program ends meanwhile; ends the
// process where an option bounds the wait.

#include <cstdint>
#include <string_view>

#include "core/result.hpp"
#include "media/rados/agent_link.hpp"

namespace stillpoint::rados {

/// Threads: one uses it.
class ClusterWait {
public:
    /// `max_ms`: as MediumOptions::cluster_wait_max_ms.
    explicit ClusterWait(std::uint32_t max_ms) noexcept : max_ms_(max_ms) {}

    /// Returns when the request in the slot is done, or the agent has ended. No malloc. Errors: no_space, io: it has waited for `max_ms`,
    /// and the process does not end by that.
    [[nodiscard]] Result<void> await(AgentLink& link, std::uint32_t slot, std::string_view path) noexcept;
    /// The cluster has taken everything.
    void end(std::string_view path) noexcept;

private:
    void tell_of_end(bool is_full, std::string_view path, std::uint64_t waited_ns) noexcept;

    std::uint32_t max_ms_;
    bool is_told_ = false;
    bool is_end_told_ = false;
    std::uint64_t ending_ns_ = 0;  ///< when it was first seen that the program ends
};

}  // namespace stillpoint::rados
