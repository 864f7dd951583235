// The measured process of the microbenchmark of [NVthreads §3, Figure 3], regions of 1000 pages that are overwritten, and of PageRank on a
// power-law graph, whose ranks are durable; in slices (harness/turns.hpp). Linked with page_regions.c, which alone is compiled by what is
// measured.
//
// Usage: regions_worker pool=PATH pool_mib=N threads=N length=BYTES
//        regions_worker pool=PATH pool_mib=N threads=N program=pagerank

#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "../applications/power_law_graph.hpp"
#include "../harness/turns.hpp"
#include "regions.h"

namespace bench {
namespace {

constexpr unsigned threads_max = 64;

void must(int failed, const char* what)
{
    if (failed != 0) {
        give_up(std::string(what) + ": " + std::strerror(failed) + ": " + regions_error());
    }
}

class Regions final : public TurnWorkload {
public:
    static constexpr std::size_t page_count = 1000;

    explicit Regions(std::size_t length) : length_(length) {}
    std::uint64_t perform(unsigned, Random& random) override
    {
        constexpr unsigned turn = 16;
        for (unsigned i = 0; i < turn; ++i) {
            const std::size_t page = random.below(page_count);
            const std::size_t begin = random.below(regions_page_bytes - length_ + 1);
            must(regions_write(page, begin, length_, static_cast<int>(random.below(256))), "a write failed");
        }
        return turn;
    }
    void settle() override {}

private:
    std::size_t length_;
};

/// The ranks are there twice: an iteration reads one copy and writes the other, page by page. Threads do not wait for each other between
/// iterations, which changes the ranks a little, and nothing of the cost.
class PageRank final : public TurnWorkload {
public:
    static constexpr std::uint32_t nodes = 1u << 20;
    static constexpr std::size_t page_count = 2 * nodes * sizeof(double) / regions_page_bytes;

    PageRank() : graph_(nodes, links_mean) {}
    std::uint64_t perform(unsigned, Random&) override
    {
        constexpr std::size_t pages_of_copy = page_count / 2;
        constexpr std::uint32_t nodes_of_page = regions_page_bytes / sizeof(double);
        const std::uint64_t step = next_.fetch_add(1);
        const std::uint64_t page = step % pages_of_copy;
        const std::uint64_t copy = step / pages_of_copy % 2;
        const auto* const old = static_cast<const double*>(regions_bytes()) + copy * nodes;
        std::array<double, nodes_of_page> ranks;
        std::uint64_t links = 0;
        for (std::uint32_t i = 0; i < nodes_of_page; ++i) {
            const std::uint64_t node = page * nodes_of_page + i;
            double linked = 0;
            for (std::uint32_t at = graph_.first_source[node]; at < graph_.first_source[node + 1]; ++at) {
                linked += old[graph_.sources[at]] * graph_.inverse_out_degrees[graph_.sources[at]];
            }
            links += graph_.first_source[node + 1] - graph_.first_source[node];
            ranks[i] = (1 - damping) / nodes + damping * linked;
        }
        must(regions_put((1 - copy) * pages_of_copy + page, ranks.data()), "a write failed");
        return links;
    }
    void settle() override {}

private:
    static constexpr double damping = 0.85;
    static constexpr std::uint32_t links_mean = 8;
    const PowerLawGraph graph_;
    std::atomic<std::uint64_t> next_{0};
};

void run(const Settings& settings)
{
    const auto threads = static_cast<unsigned>(settings.number_from("threads", 1, threads_max));
    const std::size_t pool_bytes = settings.number_from("pool_mib", 1, 1u << 20) << 20;
    const bool is_pagerank = settings.text("program") == "pagerank";
    must(regions_open(settings.text("pool").c_str(), pool_bytes, is_pagerank ? PageRank::page_count : Regions::page_count),
         "the pool cannot be opened");
    if (is_pagerank) {
        PageRank ranks;
        serve(ranks, threads);
    } else {
        Regions regions(settings.number_from("length", 1, regions_page_bytes));
        serve(regions, threads);
    }
    if (const std::size_t torn = regions_torn(); torn != 0) {
        give_up(std::to_string(torn) + " pages do not hold what was written last");
    }
    regions_close();
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
