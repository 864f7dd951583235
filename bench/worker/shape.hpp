#pragma once
// The task of one measured process, from its command line: name=value words after the workload's name.

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

struct Shape {
    unsigned threads = 1;
    /// How many of 100 operations are reads; workloads with a mix of their own ignore it.
    unsigned read_percent = 50;
    std::size_t value_bytes = 8;
    /// Keys, elements, points, input bytes: what the workload's page says. 0: its own default.
    std::uint64_t size = 0;
    /// Points, trials or elements of one operation: of an engine that has them, between two restart points. 0: the workload's own.
    std::uint64_t operation_size = 0;
    /// A small input, for tests: only where `size` is 0.
    bool is_smoke = false;
    /// The large input of a workload that has two, instead of its usual one.
    bool is_large = false;
    bool is_pinned = true;
    /// Peers: the folder of their files; and what they must survive: "process" or "power".
    std::string folder;
    std::string durability = "process";
    /// Peers: room for their pool.
    std::uint64_t pool_mib = 4096;

    /// The workload's size where none is asked for.
    [[nodiscard]] std::uint64_t size_or(std::uint64_t usual, std::uint64_t smoke) const noexcept
    {
        return size != 0 ? size : is_smoke ? smoke : usual;
    }
};

}  // namespace bench
