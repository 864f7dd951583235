// ssca2 of STAMP (IISWC 2008, §III.B.6): kernel 1 of the Scalable Synthetic Compact Applications 2, which makes arrays of neighbours of a
// list of the edges of a directed graph.
//
// Each thread has a part of the list. It counts the edges at both ends of each, a transaction an edge; then the places of each vertex in
// the arrays are sums of these counts; then it puts each edge into the arrays of both of its vertices, in a transaction again. Transactions
// are short, and in a large graph two of them seldom meet.
//
// The graph: cliques of random sizes, each edge up to three times, and from each clique some edges to others, fewer to far ones.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "../../harness/random.hpp"
#include "../../workloads/makers.hpp"
#include "programs.hpp"

namespace bench {
namespace {

constexpr std::uint64_t parallel_edges_max = 3;

struct Edge {
    std::uint32_t from;
    std::uint32_t to;
};
/// The edges at one side of a vertex, those that leave it or those that arrive.
struct Side {
    std::uint32_t degree;
    std::uint32_t filled;  ///< how many are in the array
    std::uint64_t begin;  ///< of its part of the array
};
struct Vertex {
    Side out;
    Side in;
};

class Ssca2 final : public TransactionalJob {
public:
    Ssca2(const Shape& shape, unsigned scale) : TransactionalJob(shape), vertex_count_(1u << scale), scale_(scale), sums_(threads()) {}

private:
    void make_input() override
    {
        Random random(41);
        std::vector<std::uint32_t> numbers(vertex_count_);  // neighbours in a clique are not neighbours in memory
        std::iota(numbers.begin(), numbers.end(), 0);
        shuffle(numbers, random);
        const auto clique_max = static_cast<std::uint64_t>(std::exp2(scale_ / 3.0));
        const auto add = [&](std::uint32_t from, std::uint32_t to) {
            for (std::uint64_t i = random.below(parallel_edges_max); i < parallel_edges_max; ++i) {
                edges_.push_back({numbers[from], numbers[to]});
            }
        };
        for (std::uint32_t first = 0; first < vertex_count_;) {
            const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(first + 1 + random.below(clique_max), vertex_count_));
            for (std::uint32_t from = first; from < end; ++from) {
                for (std::uint32_t to = first; to < end; ++to) {
                    if (from != to) {
                        add(from, to);
                    }
                }
            }
            for (std::uint32_t distance = 1; distance < vertex_count_ && random.below(2) == 0; distance *= 2) {
                add(first, (end + distance) % vertex_count_);
            }
            first = end;
        }
        shuffle(edges_, random);
    }
    void find_memory() override
    {
        vertices_ = M::named<Vertex>("bench.ssca2.vertices", vertex_count_);
        out_ = M::named<std::uint32_t>("bench.ssca2.out", edges_.size());
        in_ = M::named<std::uint32_t>("bench.ssca2.in", edges_.size());
    }
    /// The arrays stay as they are: they count only as far as the vertices say.
    void clear() override
    {
        fill(static_cast<std::uint64_t*>(static_cast<void*>(vertices_)), vertex_count_ * sizeof(Vertex) / sizeof(std::uint64_t));
    }

    void run(Context& context) override
    {
        const Part edges = part_of(context.thread, edges_.size());
        for (std::uint64_t i = edges.first; i < edges.last; ++i) {
            atomically(context, [&](auto& tx) {
                add(tx, vertices_[edges_[i].from].out.degree, 1);
                add(tx, vertices_[edges_[i].to].in.degree, 1);
            });
        }
        wait_for_all();
        find_begins(context);
        wait_for_all();
        for (std::uint64_t i = edges.first; i < edges.last; ++i) {
            atomically(context, [&](auto& tx) {
                put(tx, out_, vertices_[edges_[i].from].out, i);
                put(tx, in_, vertices_[edges_[i].to].in, i);
            });
        }
        context.changed_bytes += (edges.last - edges.first) * 6 * sizeof(std::uint32_t);
    }
    template <Transaction Tx>
    static void put(Tx& tx, std::uint32_t* array, Side& side, std::uint64_t edge)
    {
        const std::uint32_t place = add(tx, side.filled, 1) - 1;
        tx.write(array[tx.read(side.begin) + place], static_cast<std::uint32_t>(edge));
    }
    /// Degrees do not change any more.
    void find_begins(Context& context)
    {
        constexpr std::uint64_t each = 32;
        const Part part = part_of(context.thread, vertex_count_);
        sums_[context.thread] = {};
        for (std::uint64_t i = part.first; i < part.last; ++i) {
            sums_[context.thread].out += vertices_[i].out.degree;
            sums_[context.thread].in += vertices_[i].in.degree;
        }
        wait_for_all();
        Sums before{};
        for (unsigned thread = 0; thread < context.thread; ++thread) {
            before.out += sums_[thread].out;
            before.in += sums_[thread].in;
        }
        for (std::uint64_t first = part.first; first < part.last; first += each) {
            before = atomically(context, [&, begin = before](auto& tx) {
                Sums next = begin;
                for (std::uint64_t i = first; i < std::min(first + each, part.last); ++i) {
                    tx.write(vertices_[i].out.begin, next.out);
                    tx.write(vertices_[i].in.begin, next.in);
                    next.out += tx.read(vertices_[i].out.degree);
                    next.in += tx.read(vertices_[i].in.degree);
                }
                return next;
            });
        }
    }

    std::string fault_of_result() const override
    {
        for (std::uint64_t i = 0; i < vertex_count_; ++i) {
            if (vertices_[i].out.filled != vertices_[i].out.degree || vertices_[i].in.filled != vertices_[i].in.degree) {
                return "vertex " + std::to_string(i) + " has fewer edges in the arrays than were counted";
            }
        }
        const std::uint64_t counted = std::accumulate(vertices_, vertices_ + vertex_count_, std::uint64_t{0},
                                                      [](std::uint64_t sum, const Vertex& vertex) { return sum + vertex.out.degree; });
        return counted != edges_.size() ? std::to_string(counted) + " edges were counted" : fault_of_unfinished();
    }
    /// As many edges were counted at one of their ends as at the other, and at no vertex more than it has; the arrays have none twice, and
    /// the one has those that the other has.
    std::string fault_of_unfinished() const override
    {
        std::vector<Sums> degrees(vertex_count_);
        for (const Edge& edge : edges_) {
            ++degrees[edge.from].out;
            ++degrees[edge.to].in;
        }
        std::uint64_t counted_out = 0;
        std::uint64_t counted_in = 0;
        std::vector<unsigned char> found(edges_.size());  // 1: in the array of the first end; 2: of the second one
        for (std::uint64_t i = 0; i < vertex_count_; ++i) {
            const auto& [out, in] = vertices_[i];
            counted_out += out.degree;
            counted_in += in.degree;
            if (out.degree > degrees[i].out || in.degree > degrees[i].in || out.filled > out.degree || in.filled > in.degree) {
                return "vertex " + std::to_string(i) + " has more edges than it should have";
            }
            const auto is_from = [&](const Edge& edge) { return edge.from == i; };
            const auto is_to = [&](const Edge& edge) { return edge.to == i; };
            if (!mark(out, out_, found, 1, is_from) || !mark(in, in_, found, 2, is_to)) {
                return "an array has an edge twice, or one of another vertex than " + std::to_string(i);
            }
        }
        const bool are_alike = std::all_of(found.begin(), found.end(), [](unsigned char sides) { return sides == 0 || sides == 3; });
        return counted_out != counted_in || !are_alike ? "edges were counted, or put into an array, at one end only" : std::string();
    }
    template <class IsIts>
    [[nodiscard]] bool mark(const Side& side, const std::uint32_t* array, std::vector<unsigned char>& found, unsigned char bit,
                            IsIts is_its) const
    {
        for (std::uint64_t i = side.begin; i < side.begin + side.filled; ++i) {
            if (i >= edges_.size() || array[i] >= edges_.size() || (found[array[i]] & bit) != 0 || !is_its(edges_[array[i]])) {
                return false;
            }
            found[array[i]] = static_cast<unsigned char>(found[array[i]] | bit);
        }
        return true;
    }

    struct Sums {
        std::uint64_t out;
        std::uint64_t in;
    };

    const std::uint32_t vertex_count_;
    const unsigned scale_;
    std::vector<Edge> edges_;
    std::vector<Sums> sums_;  ///< of each thread's part
    Vertex* vertices_ = nullptr;
    std::uint32_t* out_ = nullptr;  ///< numbers of edges
    std::uint32_t* in_ = nullptr;
};

}  // namespace

Work make_stamp_ssca2(const Shape& shape) { return {nullptr, std::make_unique<Ssca2>(shape, parameters_for<unsigned>(shape, 9, 13, 18))}; }

}  // namespace bench
