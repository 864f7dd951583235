#include "power_law_graph.hpp"

#include <utility>

#include "../harness/random.hpp"
#include "../harness/zipf.hpp"

namespace bench {

namespace {

constexpr std::uint32_t site_nodes = 64;
constexpr unsigned percent_within_site = 80;

}  // namespace

PowerLawGraph::PowerLawGraph(std::uint32_t nodes, std::uint32_t links_mean) : first_source(nodes + 1), inverse_out_degrees(nodes)
{
    Random random(7);
    const Zipf popularity(nodes, 0.6);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> links;  // from, to
    links.reserve(std::size_t{nodes} * links_mean);
    for (std::uint32_t from = 0; from < nodes; ++from) {
        const auto degree = from % 16 == 3 ? 0 : static_cast<std::uint32_t>(1 + random.below(2 * links_mean));
        for (std::uint32_t i = 0; i < degree; ++i) {
            const bool stays = random.below(100) < percent_within_site;
            const std::uint64_t to = stays ? from / site_nodes * site_nodes + random.below(site_nodes) : popularity.next_scrambled(random);
            links.emplace_back(from, static_cast<std::uint32_t>(to % nodes));
            ++first_source[links.back().second + 1];
        }
        inverse_out_degrees[from] = degree == 0 ? 0 : 1.0 / degree;
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
        first_source[node + 1] += first_source[node];
    }
    sources.resize(links.size());
    std::vector<std::uint32_t> next(first_source.begin(), first_source.end() - 1);
    for (const auto& [from, to] : links) {
        sources[next[to]++] = from;
    }
}

}  // namespace bench
