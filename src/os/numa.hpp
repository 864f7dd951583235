#pragma once
// The memory nodes of the machine: which CPUs are near which memory, threads near a node, pages spread over all nodes.

#include <array>
#include <cstddef>
#include <sched.h>

namespace stillpoint::os {

/// The nodes that have CPUs; those with memory alone have no thread to be near to.
class NumaNodes {
public:
    static constexpr unsigned nodes_max = 64;

    /// `folder` has the kernel's files `online` and `node<number>/cpulist`. Where it cannot be read, all CPUs are one node. No malloc.
    [[nodiscard]] static NumaNodes read(const char* folder = "/sys/devices/system/node") noexcept;

    [[nodiscard]] unsigned count() const noexcept { return count_; }
    [[nodiscard]] unsigned number(unsigned node) const noexcept { return nodes_[node].number; }  ///< the kernel's
    [[nodiscard]] const cpu_set_t& cpus(unsigned node) const noexcept { return nodes_[node].cpus; }

    /// The calling thread runs only near `node` from here on. False: none of the CPUs it may use is there, and nothing changes.
    bool run_near(unsigned node) const noexcept;

    /// Pages of [memory, + bytes) that are not there yet come to lie on the nodes in turn, by their address: page number modulo count().
    /// With one node, or a kernel without memory policies, nothing changes.
    void spread_pages(void* memory, std::size_t bytes) const noexcept;

private:
    struct Node {
        unsigned number;
        cpu_set_t cpus;
    };
    std::array<Node, nodes_max> nodes_{};
    unsigned count_ = 0;
};

}  // namespace stillpoint::os
