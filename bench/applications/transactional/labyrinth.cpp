// labyrinth of STAMP (IISWC 2008, §III.B.5): connects pairs of points in a grid of three dimensions by paths that do not touch (Lee's
// algorithm).
//
// A thread takes a pair, and connects it in one transaction: it copies the grid to memory of its own, spreads from one point over free
// cells until it reaches the other one, and goes back along a shortest way; then it reads the cells of the way in the grid itself, and
// writes the path's number to them. The copy is not read through the transaction, or any two paths would be in conflict; so it may be old:
// where a cell of the way is no longer free, the thread copies again.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../../harness/random.hpp"
#include "../../workloads/makers.hpp"
#include "programs.hpp"

namespace bench {
namespace {

using Cell = std::uint32_t;  ///< a place in the grid
using Mark = std::uint32_t;  ///< what is there

struct Parameters {
    std::uint32_t width;
    std::uint32_t depth;
    std::uint32_t height;
    std::uint32_t pairs;
};
struct Pair {
    Cell from;
    Cell to;
};

constexpr Mark is_free = 0;
/// The mark of a pair's two cells until they are connected; without the bit, of all cells of its path.
constexpr Mark reserved = Mark{1} << 31;
constexpr Mark mark_of(std::uint64_t pair) { return static_cast<Mark>(pair + 1); }

/// The outcome of a pair; any other number is that of its path's cells.
constexpr std::uint64_t not_tried = 0;
constexpr std::uint64_t no_way = 1;

/// The shape of the grid.
class Grid {
public:
    explicit Grid(const Parameters& of) : width_(of.width), layer_(of.width * of.depth), cells_(of.width * of.depth * of.height) {}

    [[nodiscard]] Cell cells() const noexcept { return cells_; }
    /// visit(cell), for each neighbour, until one gives true: then so does this.
    template <class Visit>
    bool any_neighbour(Cell cell, Visit visit) const
    {
        const Cell x = cell % width_;
        const Cell in_layer = cell % layer_;
        return (x != 0 && visit(cell - 1)) || (x != width_ - 1 && visit(cell + 1)) || (in_layer >= width_ && visit(cell - width_)) ||
               (in_layer + width_ < layer_ && visit(cell + width_)) || (cell >= layer_ && visit(cell - layer_)) ||
               (cell + layer_ < cells_ && visit(cell + layer_));
    }

private:
    Cell width_;
    Cell layer_;
    Cell cells_;
};

/// Finds shortest ways in a copy of the grid.
class Router {
public:
    explicit Router(const Grid& grid) : grid_(grid), steps_(grid.cells()) {}

    /// The way from one cell of the pair to the other, both included; empty: there is none. `mark_at(cell)` reads the grid.
    template <class MarkAt>
    const std::vector<Cell>& route(const Pair& pair, MarkAt mark_at)
    {
        for (Cell cell = 0; cell < grid_.cells(); ++cell) {
            steps_[cell] = mark_at(cell) == is_free ? unreached : blocked;
        }
        way_.clear();
        steps_[pair.from] = 1;
        steps_[pair.to] = unreached;
        if (!spread(pair)) {
            return way_;
        }
        way_.push_back(pair.to);
        for (Cell at = pair.to; at != pair.from; at = way_.back()) {
            grid_.any_neighbour(at, [&](Cell next) {
                const bool is_nearer = steps_[next] == steps_[at] - 1 && steps_[next] != unreached;
                if (is_nearer) {
                    way_.push_back(next);
                }
                return is_nearer;
            });
        }
        return way_;
    }

private:
    static constexpr std::uint32_t unreached = 0;
    static constexpr std::uint32_t blocked = UINT32_MAX;

    /// Numbers cells by their distance, until the other cell of the pair has its number.
    bool spread(const Pair& pair)
    {
        reached_.assign(1, pair.from);
        for (std::size_t i = 0; i < reached_.size(); ++i) {
            const Cell at = reached_[i];
            const auto reach = [&](Cell next) {
                if (steps_[next] == unreached) {
                    steps_[next] = steps_[at] + 1;
                    reached_.push_back(next);
                }
                return next == pair.to;
            };
            if (grid_.any_neighbour(at, reach)) {
                return true;
            }
        }
        return false;
    }

    const Grid& grid_;
    std::vector<std::uint32_t> steps_;
    std::vector<Cell> reached_;
    std::vector<Cell> way_;
};

class Labyrinth final : public TransactionalJob {
public:
    Labyrinth(const Shape& shape, const Parameters& parameters)
        : TransactionalJob(shape), grid_(parameters), pairs_(parameters.pairs), routers_(shape.threads, Router(grid_))
    {
    }

private:
    struct State {
        std::uint64_t next_pair;
    };

    void make_input() override
    {
        Random random(43);
        std::vector<bool> is_taken(grid_.cells());
        const auto cell = [&] {
            for (;;) {
                const auto chosen = static_cast<Cell>(random.below(grid_.cells()));
                if (!is_taken[chosen]) {
                    is_taken[chosen] = true;
                    return chosen;
                }
            }
        };
        for (Pair& pair : pairs_) {
            pair.from = cell();
            pair.to = cell();
        }
    }
    void find_memory() override
    {
        state_ = M::named<State>("bench.labyrinth");
        marks_ = M::named<Mark>("bench.labyrinth.grid", grid_.cells());
        outcomes_ = M::named<std::uint64_t>("bench.labyrinth.outcomes", pairs_.size());
    }
    void clear() override
    {
        fill(marks_, grid_.cells(), is_free);
        fill(outcomes_, pairs_.size(), not_tried);
        for (std::size_t i = 0; i < pairs_.size(); ++i) {
            M::atomically([&](auto& tx) {
                tx.write(marks_[pairs_[i].from], mark_of(i) | reserved);
                tx.write(marks_[pairs_[i].to], mark_of(i) | reserved);
            });
        }
        M::atomically([&](auto& tx) { tx.write(state_->next_pair, std::uint64_t{0}); });
    }

    void run(Context& context) override
    {
        for (;;) {
            const std::uint64_t pair = atomically(context, [&](auto& tx) { return add(tx, state_->next_pair, 1) - 1; });
            if (pair >= pairs_.size()) {
                return;
            }
            context.changed_bytes += atomically(context, [&](auto& tx) { return connect(tx, routers_[context.thread], pair); });
        }
    }
    /// Returns the bytes that it changed.
    template <Transaction Tx>
    std::uint64_t connect(Tx& tx, Router& router, std::uint64_t number)
    {
        const Pair& pair = pairs_[number];
        for (;;) {
            const std::vector<Cell>& way = router.route(pair, [&](Cell cell) { return peek(marks_[cell]); });
            const bool is_there = std::all_of(way.begin(), way.end(), [&](Cell cell) {
                return cell == pair.from || cell == pair.to || tx.read(marks_[cell]) == is_free;
            });
            if (!is_there) {
                continue;
            }
            for (const Cell cell : way) {
                tx.write(marks_[cell], mark_of(number));
            }
            tx.write(outcomes_[number], way.empty() ? no_way : std::uint64_t{way.size()});
            return way.size() * sizeof(Mark);
        }
    }

    std::string fault_of_result() const override
    {
        const bool are_tried = std::count(outcomes_, outcomes_ + pairs_.size(), not_tried) == 0;
        return are_tried ? fault_of_unfinished() : "a pair was not tried";
    }
    /// Each path is one, without branches, between its cells; where there was no way there is none now; each thread has at most one pair
    /// in its hands.
    std::string fault_of_unfinished() const override
    {
        std::vector<std::uint64_t> counts(pairs_.size());
        for (Cell cell = 0; cell < grid_.cells(); ++cell) {
            const Mark mark = marks_[cell] & ~reserved;
            if (mark > pairs_.size()) {
                return "a cell has the mark of no pair";
            }
            if (mark != is_free) {
                ++counts[mark - 1];
            }
        }
        std::uint64_t in_hands = 0;
        for (std::size_t i = 0; i < pairs_.size(); ++i) {
            const bool is_connected = outcomes_[i] > no_way;
            in_hands += i < state_->next_pair && outcomes_[i] == not_tried;
            if (is_connected ? outcomes_[i] != counts[i] || !is_path(i) : counts[i] != 2 || !is_untouched(i)) {
                return "the cells of pair " + std::to_string(i) + " do not make a path";
            }
            if (outcomes_[i] == no_way && !Router(grid_).route(pairs_[i], [&](Cell cell) { return marks_[cell]; }).empty()) {
                return "pair " + std::to_string(i) + " could have been connected";
            }
        }
        return in_hands > threads() ? "pairs were taken that no thread can have had" : std::string();
    }
    [[nodiscard]] bool is_untouched(std::size_t pair) const
    {
        return marks_[pairs_[pair].from] == (mark_of(pair) | reserved) && marks_[pairs_[pair].to] == (mark_of(pair) | reserved);
    }
    /// Goes along it. It is a shortest one, so no two of its cells are neighbours but those that follow each other.
    [[nodiscard]] bool is_path(std::size_t pair) const
    {
        Cell before = pairs_[pair].from;
        Cell at = pairs_[pair].from;
        std::uint64_t length = 1;
        while (at != pairs_[pair].to && length <= outcomes_[pair]) {
            std::array<Cell, 2> next{};
            std::size_t found = 0;
            grid_.any_neighbour(at, [&](Cell cell) {
                if (cell != before && marks_[cell] == mark_of(pair)) {
                    next[std::min<std::size_t>(found++, 1)] = cell;
                }
                return false;
            });
            if (found != 1) {
                return false;
            }
            before = at;
            at = next[0];
            ++length;
        }
        return at == pairs_[pair].to && marks_[at] == mark_of(pair) && length == outcomes_[pair];
    }

    const Grid grid_;
    std::vector<Pair> pairs_;
    std::vector<Router> routers_;  ///< one for each thread
    State* state_ = nullptr;
    Mark* marks_ = nullptr;
    std::uint64_t* outcomes_ = nullptr;
};

}  // namespace

Work make_stamp_labyrinth(const Shape& shape)
{
    const auto chosen = parameters_for<Parameters>(shape, {16, 16, 3, 20}, {32, 32, 3, 96}, {384, 384, 7, 512});
    return {nullptr, std::make_unique<Labyrinth>(shape, chosen)};
}

}  // namespace bench
