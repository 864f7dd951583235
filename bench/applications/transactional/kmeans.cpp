// kmeans of STAMP (IISWC 2008, §III.B.4): points in clusters, each around its mean, until few of them change their cluster.
//
// Threads take some points at a time from a counter. Which centre is nearest to a point is computed outside of transactions: centres do not
// change in an iteration. A transaction adds the point to the sums of its cluster. Between two iterations one thread makes new centres of
// the sums. The fewer clusters there are, the more often two threads write to the same one.
//
// Coordinates are whole numbers, so that the result is the same for any number of threads. A point's membership has the number of its
// iteration: the sums of an interrupted one can be checked against it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../../workloads/makers.hpp"
#include "../inputs.hpp"
#include "programs.hpp"

namespace bench {
namespace {

struct Parameters {
    std::uint64_t points;
    unsigned dimensions;
    unsigned clusters;
    std::uint64_t changes_min;  ///< of an iteration: with fewer of them the computation ends
    std::uint64_t iterations_max;
};
constexpr std::uint64_t points_each = 3;  // taken at a time
constexpr unsigned clouds = 16;  // of the input

/// The centres, and the sums of one iteration; of the program's memory, or of the checker's.
struct Sums {
    std::int64_t* coordinates;  ///< cluster after cluster
    std::uint64_t* points;
};

class TransactionalKmeans final : public TransactionalJob {
public:
    TransactionalKmeans(const Shape& shape, const Parameters& parameters) : TransactionalJob(shape), of_(parameters) {}

private:
    struct State {
        std::uint64_t iteration;  ///< from 1
        std::uint64_t is_done;
        alignas(64) std::uint64_t next_point;
        alignas(64) std::uint64_t changes;
    };

    void make_input() override { input_ = make_clouds(of_.points, of_.dimensions, clouds); }
    void find_memory() override
    {
        state_ = M::named<State>("bench.kmeans.state");
        centres_ = M::named<std::int64_t>("bench.kmeans.centres", centre_words());
        sums_ = {M::named<std::int64_t>("bench.kmeans.sums", centre_words()), M::named<std::uint64_t>("bench.kmeans.points", of_.clusters)};
        memberships_ = M::named<std::uint64_t>("bench.kmeans.memberships", of_.points);
    }
    void clear() override
    {
        fill(memberships_, of_.points);
        fill(sums_.coordinates, centre_words());
        fill(sums_.points, of_.clusters);
        M::atomically([&](auto& tx) {
            for (std::size_t i = 0; i < centre_words(); ++i) {
                tx.write(centres_[i], std::int64_t{input_[i]});  // the first points
            }
            tx.write(state_->iteration, std::uint64_t{1});
            tx.write(state_->is_done, std::uint64_t{0});
            tx.write(state_->next_point, std::uint64_t{0});
            tx.write(state_->changes, std::uint64_t{0});
        });
    }

    void run(Context& context) override
    {
        do {
            std::uint64_t changes = 0;
            for (;;) {
                const std::uint64_t first = atomically(context,
                                                       [&](auto& tx) { return add(tx, state_->next_point, points_each) - points_each; });
                if (first >= of_.points) {
                    break;
                }
                for (std::uint64_t i = first; i < std::min(first + points_each, of_.points); ++i) {
                    changes += assign(context, i);
                }
            }
            atomically(context, [&](auto& tx) { add(tx, state_->changes, changes); });
            wait_for_all();
            if (context.thread == 0) {
                end_iteration(context);
            }
            wait_for_all();
        } while (state_->is_done == 0);
    }
    /// True: the point was in another cluster before.
    bool assign(Context& context, std::uint64_t i)
    {
        const unsigned cluster = nearest(centres_, point(i));
        const std::uint64_t membership = state_->iteration << 32 | cluster;
        context.changed_bytes += (of_.dimensions + 2) * sizeof membership;
        return atomically(context, [&](auto& tx) {
            add(tx, sums_.points[cluster], 1);
            for (unsigned d = 0; d < of_.dimensions; ++d) {
                add(tx, sums_.coordinates[cluster * of_.dimensions + d], point(i)[d]);
            }
            const std::uint64_t before = tx.read(memberships_[i]);
            tx.write(memberships_[i], membership);
            return before == 0 || before << 32 != membership << 32;
        });
    }
    /// The other threads wait.
    void end_iteration(Context& context)
    {
        atomically(context, [&](auto& tx) {
            for (unsigned cluster = 0; cluster < of_.clusters; ++cluster) {
                const auto points = static_cast<std::int64_t>(tx.read(sums_.points[cluster]));
                tx.write(sums_.points[cluster], std::uint64_t{0});
                for (unsigned i = cluster * of_.dimensions; points != 0 && i < (cluster + 1) * of_.dimensions; ++i) {
                    tx.write(centres_[i], tx.read(sums_.coordinates[i]) / points);
                    tx.write(sums_.coordinates[i], std::int64_t{0});
                }
            }
            const std::uint64_t changes = tx.read(state_->changes);
            tx.write(state_->changes, std::uint64_t{0});
            tx.write(state_->next_point, std::uint64_t{0});
            const std::uint64_t ended = tx.read(state_->iteration);
            tx.write(state_->is_done, std::uint64_t{is_last(changes, ended)});
            tx.write(state_->iteration, ended + 1);
        });
    }
    [[nodiscard]] bool is_last(std::uint64_t changes, std::uint64_t iteration) const
    {
        return changes < of_.changes_min || iteration == of_.iterations_max;
    }

    /// Compared with a computation by one thread in ordinary memory.
    std::string fault_of_result() const override
    {
        if (expected_centres_.empty()) {
            compute_expected();
        }
        for (std::uint64_t i = 0; i < of_.points; ++i) {
            if (memberships_[i] != expected_[i]) {
                return "point " + std::to_string(i) + " is in the wrong cluster, or was left out of the last iteration";
            }
        }
        return std::equal(expected_centres_.begin(), expected_centres_.end(), centres_) ? std::string() : "the centres are wrong";
    }
    void compute_expected() const
    {
        std::vector<std::int64_t> centres(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(centre_words()));
        expected_.assign(of_.points, 0);
        std::uint64_t changes = of_.points;
        for (std::uint64_t iteration = 1; iteration == 1 || !is_last(changes, iteration - 1); ++iteration) {
            changes = 0;
            for (std::uint64_t i = 0; i < of_.points; ++i) {
                const std::uint64_t found = iteration << 32 | nearest(centres.data(), point(i));
                changes += expected_[i] == 0 || expected_[i] << 32 != found << 32;
                expected_[i] = found;
            }
            const auto [coordinates, points] = sums_of(expected_.data(), iteration);
            for (std::size_t i = 0; i < centre_words(); ++i) {
                const auto members = static_cast<std::int64_t>(points[i / of_.dimensions]);
                centres[i] = members != 0 ? coordinates[i] / members : centres[i];
            }
        }
        expected_centres_ = std::move(centres);
    }
    /// The sums are those of the points that have the number of this iteration.
    std::string fault_of_unfinished() const override
    {
        const auto [coordinates, points] = sums_of(memberships_, state_->iteration);
        return std::equal(coordinates.begin(), coordinates.end(), sums_.coordinates) &&
                       std::equal(points.begin(), points.end(), sums_.points)
                   ? std::string()
                   : "the sums of iteration " + std::to_string(state_->iteration) + " are not those of its points";
    }

    struct OrdinarySums {
        std::vector<std::int64_t> coordinates;
        std::vector<std::uint64_t> points;
    };
    [[nodiscard]] OrdinarySums sums_of(const std::uint64_t* memberships, std::uint64_t iteration) const
    {
        OrdinarySums sums{std::vector<std::int64_t>(centre_words()), std::vector<std::uint64_t>(of_.clusters)};
        for (std::uint64_t i = 0; i < of_.points; ++i) {
            const std::uint64_t cluster = memberships[i] & UINT32_MAX;
            if (memberships[i] >> 32 != iteration || cluster >= of_.clusters) {
                continue;
            }
            ++sums.points[cluster];
            for (unsigned d = 0; d < of_.dimensions; ++d) {
                sums.coordinates[cluster * of_.dimensions + d] += point(i)[d];
            }
        }
        return sums;
    }

    /// The first of several that are equally near.
    [[nodiscard]] unsigned nearest(const std::int64_t* centres, const std::int32_t* coordinates) const noexcept
    {
        unsigned best = 0;
        std::int64_t best_distance = INT64_MAX;
        for (unsigned cluster = 0; cluster < of_.clusters; ++cluster) {
            std::int64_t distance = 0;
            for (unsigned d = 0; d < of_.dimensions; ++d) {
                const std::int64_t difference = coordinates[d] - centres[cluster * of_.dimensions + d];
                distance += difference * difference;
            }
            if (distance < best_distance) {
                best_distance = distance;
                best = cluster;
            }
        }
        return best;
    }
    [[nodiscard]] const std::int32_t* point(std::uint64_t i) const noexcept { return input_.data() + i * of_.dimensions; }
    [[nodiscard]] std::size_t centre_words() const noexcept { return std::size_t{of_.clusters} * of_.dimensions; }

    const Parameters of_;
    std::vector<std::int32_t> input_;
    State* state_ = nullptr;
    std::int64_t* centres_ = nullptr;
    Sums sums_ = {};
    std::uint64_t* memberships_ = nullptr;
    mutable std::vector<std::uint64_t> expected_;  ///< computed when the first result is checked
    mutable std::vector<std::int64_t> expected_centres_;
};

Work make(const Shape& shape, unsigned clusters, std::uint64_t iterations_max)
{
    Parameters chosen = parameters_for<Parameters>(shape, {500, 4, 0, 1, 5}, {2048, 16, 0, 1, 40}, {65536, 32, 0, 1, iterations_max});
    chosen.clusters = clusters;
    return {nullptr, std::make_unique<TransactionalKmeans>(shape, chosen)};
}

}  // namespace

Work make_stamp_kmeans_vlow(const Shape& shape) { return make(shape, 120, 40); }
Work make_stamp_kmeans_low(const Shape& shape) { return make(shape, 40, 120); }
Work make_stamp_kmeans_high(const Shape& shape) { return make(shape, 15, 250); }

}  // namespace bench
