// PageRank by power iteration until it has converged; after a crash it continues at the last durable iteration.
//
// Durable: the ranks, twice, and how many iterations are done. An iteration reads the one copy and writes the other, block by
// block; no thread reads what it wrote until the last operation of the iteration raises the number. So that operation makes the
// iteration and its number valid together, whatever part of the other copy a crash leaves behind.
//
// The order of every sum is fixed by blocks, not by threads: the ranks are the same to the bit with any number of threads.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../engines/volatile_engine.hpp"
#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "input_size.hpp"
#include "power_law_graph.hpp"

namespace bench {
namespace {

constexpr double damping = 0.85;
constexpr double change_max = 1e-10;  // of all ranks together, whose sum is 1
constexpr std::uint64_t iterations_max = 500;
constexpr std::uint32_t block_nodes = 1024;

/// The sums of one block in one iteration.
struct BlockSums {
    double change = 0;
    double dangling = 0;  ///< rank of nodes without links, which belongs to all nodes alike
};

/// New ranks of the nodes from `first` on, as many as `out` has, from the ranks `old`. `base`: what every node gets.
BlockSums rank_block(const PowerLawGraph& graph, const double* old, double base, std::uint32_t first, std::span<double> out)
{
    BlockSums sums;
    for (std::uint32_t i = 0; i < out.size(); ++i) {
        const std::uint32_t node = first + i;
        double linked = 0;
        for (std::uint32_t at = graph.first_source[node]; at < graph.first_source[node + 1]; ++at) {
            linked += old[graph.sources[at]] * graph.inverse_out_degrees[graph.sources[at]];
        }
        out[i] = base + damping * linked;
        sums.change += std::abs(out[i] - old[node]);
        sums.dangling += graph.inverse_out_degrees[node] == 0 ? out[i] : 0;
    }
    return sums;
}

template <MemoryEngine E>
class PageRank {
public:
    PageRank(const std::string& name, const PowerLawGraph& graph, Team& team)
        : graph_(graph), team_(team), blocks_((graph.nodes() + block_nodes - 1) / block_nodes), sums_(blocks_),
          state_(static_cast<State*>(E::root(name.c_str(), sizeof(State)))), ranks_{copy(name + ".even"), copy(name + ".odd")},
          iterations_(state_->iterations)
    {
    }

    /// No thread is working.
    void clear()
    {
        publish(0, 0, false);  // first: what a crash in the following leaves is not taken for ranks
        double dangling = 0;
        for (std::uint32_t block = 0; block < blocks_; ++block) {
            typename E::template Operation<1> operation;
            operation.lock(state_->writers[0].mutex);
            const auto out = block_of(0, block);
            E::about_to_write(out.data(), out.size_bytes());
            for (std::size_t i = 0; i < out.size(); ++i) {
                out[i] = 1.0 / graph_.nodes();
                dangling += graph_.inverse_out_degrees[block * block_nodes + i] == 0 ? out[i] : 0;
            }
        }
        publish(0, dangling, false);
    }

    /// Until it has converged, from where it is. All threads of the team.
    void work(Context& context)
    {
        while (!state_->has_converged) {
            const std::uint64_t done = state_->iterations;
            const auto [first, last] = team_.part_of(context.thread, blocks_);
            for (std::uint64_t block = first; block < last; ++block) {
                step(context, done, static_cast<std::uint32_t>(block));
            }
            team_.wait_for_all();
            if (context.thread == 0) {
                finish_iteration(done + 1);
            }
            team_.wait_for_all();
        }
    }

    /// May be called while threads work.
    [[nodiscard]] std::uint64_t iterations() const noexcept { return iterations_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool has_converged() const { return state_->has_converged; }
    [[nodiscard]] std::span<const double> ranks() const { return {ranks_[state_->iterations % 2], graph_.nodes()}; }

private:
    struct alignas(64) Writer {
        typename E::Mutex mutex;
    };
    struct State {
        typename E::Mutex mutex;
        typename E::template Durable<std::uint64_t> iterations;
        typename E::template Durable<double> dangling;
        typename E::template Durable<bool> has_converged;
        Writer writers[16];  ///< guards the blocks that thread i writes
    };

    double* copy(const std::string& name) const { return static_cast<double*>(E::root(name.c_str(), graph_.nodes() * sizeof(double))); }
    std::span<double> block_of(std::uint64_t iteration, std::uint32_t block) const
    {
        const std::uint32_t first = block * block_nodes;
        return {ranks_[iteration % 2] + first, std::min(block_nodes, graph_.nodes() - first)};
    }

    void step(Context& context, std::uint64_t done, std::uint32_t block)
    {
        typename E::template Operation<1> operation;
        operation.lock(state_->writers[context.thread].mutex);
        const auto out = block_of(done + 1, block);
        const double base = (1 - damping + damping * state_->dangling) / graph_.nodes();
        E::about_to_write(out.data(), out.size_bytes());
        sums_[block] = rank_block(graph_, ranks_[done % 2], base, block * block_nodes, out);
        context.changed_bytes += out.size_bytes();
    }
    void finish_iteration(std::uint64_t number)
    {
        BlockSums all;
        for (const BlockSums& one : sums_) {
            all.change += one.change;
            all.dangling += one.dangling;
        }
        publish(number, all.dangling, all.change <= change_max || number == iterations_max);
    }
    void publish(std::uint64_t iterations, double dangling, bool has_converged)
    {
        {
            typename E::template Operation<1> operation;
            operation.lock(state_->mutex);
            state_->iterations = iterations;
            state_->dangling = dangling;
            state_->has_converged = has_converged;
        }
        iterations_.store(iterations, std::memory_order_relaxed);
    }

    const PowerLawGraph& graph_;
    Team& team_;
    std::uint32_t blocks_;
    std::vector<BlockSums> sums_;
    State* state_;
    std::array<double*, 2> ranks_;
    std::atomic<std::uint64_t> iterations_;
};

class PageRankJob final : public EngineJob {
public:
    PageRankJob(const Shape& shape, std::uint32_t nodes) : EngineJob(shape), nodes_(nodes) {}

    void load() override
    {
        graph_.emplace(nodes_, 8);
        pagerank_ = std::make_unique<PageRank<E>>("bench.pagerank", *graph_, *this);
    }
    void prepare() override { pagerank_->clear(); }
    void work(Context& context) override { pagerank_->work(context); }
    std::string fault() override
    {
        if (expected_.empty()) {
            expect();
        }
        const auto ranks = pagerank_->ranks();
        if (!pagerank_->has_converged() || pagerank_->iterations() != expected_iterations_) {
            return std::to_string(pagerank_->iterations()) + " iterations instead of " + std::to_string(expected_iterations_);
        }
        return std::memcmp(ranks.data(), expected_.data(), ranks.size_bytes()) == 0 ? std::string()
                                                                                    : "the ranks differ from those of one thread";
    }
    std::uint64_t items() const override { return graph_->sources.size(); }
    bool goes_on_after_a_crash() const override { return !pagerank_->has_converged(); }
    std::uint64_t steps_done() const override { return pagerank_->iterations(); }

private:
    void expect()
    {
        Team alone(1);
        Context context;
        PageRank<VolatileEngine> reference("bench.expected", *graph_, alone);
        reference.clear();
        reference.work(context);
        expected_.assign(reference.ranks().begin(), reference.ranks().end());
        expected_iterations_ = reference.iterations();
    }

    std::uint32_t nodes_;
    std::optional<PowerLawGraph> graph_;
    std::unique_ptr<PageRank<E>> pagerank_;
    std::vector<double> expected_;
    std::uint64_t expected_iterations_ = 0;
};

}  // namespace

Work make_pagerank(const Shape& shape)
{
    const std::uint64_t nodes = input_size(shape, 1'000'000, 4000, {16, 100'000'000, "nodes"});
    return {nullptr, std::make_unique<PageRankJob>(shape, static_cast<std::uint32_t>(nodes))};
}

}  // namespace bench
