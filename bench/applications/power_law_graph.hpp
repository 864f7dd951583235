#pragma once
// A directed graph in which few nodes have most of the links from afar, by a power law, as web pages have. It stands for a file.

#include <cstdint>
#include <vector>

namespace bench {

struct PowerLawGraph {
    /// Each node has `links_mean` links out on average; one in 16 has none. Four of five links stay among 64 neighbours, as those
    /// of a web page stay within its site; without that an iteration would mix so well that a handful would do.
    PowerLawGraph(std::uint32_t nodes, std::uint32_t links_mean);

    [[nodiscard]] std::uint32_t nodes() const noexcept { return static_cast<std::uint32_t>(inverse_out_degrees.size()); }

    /// The nodes that link to node v: sources[first_source[v]] to sources[first_source[v + 1] - 1].
    std::vector<std::uint32_t> first_source;
    std::vector<std::uint32_t> sources;
    std::vector<double> inverse_out_degrees;  ///< 0 where a node has no link out
};

}  // namespace bench
