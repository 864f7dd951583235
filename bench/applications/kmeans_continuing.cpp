// k-means until no centre moves any more; after a crash it goes on at the last durable iteration.
//
// Durable: the centres, twice, and how many iterations are done; and of each point the cluster that it was put into last. An
// iteration reads the one copy of the centres and ends with one operation that writes the other and raises the number. The
// points' clusters follow from the centres, so it does no harm that a crash leaves them an iteration ahead of the number.
//
// Coordinates are whole numbers: the sums are exact, and the centres the same to the bit with any number of threads.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../engines/volatile_engine.hpp"
#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "clustered_points.hpp"
#include "input_size.hpp"

namespace bench {
namespace {

constexpr std::size_t dimensions = 4;
constexpr std::uint32_t clusters = 16;
constexpr std::uint64_t iterations_max = 1000;
constexpr std::uint64_t points_per_operation = 1024;

struct Centres {
    std::array<std::array<double, dimensions>, clusters> at;
};

struct ClusterSums {
    std::array<std::array<std::int64_t, dimensions>, clusters> coordinates;
    std::array<std::int64_t, clusters> points;
};

std::uint32_t nearest(const Centres& centres, const std::int32_t* point)
{
    std::uint32_t best = 0;
    double best_distance = 0;
    for (std::uint32_t cluster = 0; cluster < clusters; ++cluster) {
        double distance = 0;
        for (std::size_t axis = 0; axis < dimensions; ++axis) {
            const double apart = centres.at[cluster][axis] - point[axis];
            distance += apart * apart;
        }
        if (cluster == 0 || distance < best_distance) {
            best = cluster;
            best_distance = distance;
        }
    }
    return best;
}

/// A cluster without points keeps its centre.
Centres means(const ClusterSums& sums, const Centres& old)
{
    Centres centres = old;
    for (std::uint32_t cluster = 0; cluster < clusters; ++cluster) {
        for (std::size_t axis = 0; axis < dimensions && sums.points[cluster] != 0; ++axis) {
            centres.at[cluster][axis] =
                static_cast<double>(sums.coordinates[cluster][axis]) / static_cast<double>(sums.points[cluster]);
        }
    }
    return centres;
}

/// Points far apart in the input; two that are equal only make one cluster empty.
Centres first_centres(const ClusteredPoints& points)
{
    Centres centres;
    for (std::uint32_t cluster = 0; cluster < clusters; ++cluster) {
        const std::int32_t* point = points[points.count() * cluster / clusters];
        std::copy_n(point, dimensions, centres.at[cluster].begin());
    }
    return centres;
}

template <MemoryEngine E>
class ContinuingKmeans {
public:
    ContinuingKmeans(const std::string& name, const ClusteredPoints& points, Team& team)
        : points_(points), team_(team), sums_(team.threads()), state_(static_cast<State*>(E::root(name.c_str(), sizeof(State)))),
          cluster_of_(static_cast<std::uint32_t*>(E::root((name + ".clusters").c_str(), points.count() * sizeof(std::uint32_t)))),
          iterations_(state_->iterations)
    {
    }

    /// No thread is working.
    void clear() { publish(0, first_centres(points_), false); }

    /// Until it has converged, from where it is. All threads of the team.
    void work(Context& context)
    {
        while (!state_->has_converged) {
            const std::uint64_t done = state_->iterations;
            const Centres& old = state_->centres[done % 2];
            ClusterSums& sums = sums_[context.thread].sums = {};
            const auto [first, last] = team_.part_of(context.thread, points_.count());
            for (std::uint64_t point = first; point < last; point += points_per_operation) {
                assign(context, old, point, std::min(last, point + points_per_operation), sums);
            }
            team_.wait_for_all();
            if (context.thread == 0) {
                finish_iteration(context, done + 1, old);
            }
            team_.wait_for_all();
        }
    }

    /// May be called while threads work.
    [[nodiscard]] std::uint64_t iterations() const noexcept { return iterations_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool has_converged() const { return state_->has_converged; }
    [[nodiscard]] const Centres& centres() const { return state_->centres[state_->iterations % 2]; }
    /// True if each point lies in the cluster whose centre is nearest.
    [[nodiscard]] bool has_nearest_clusters() const
    {
        for (std::uint64_t point = 0; point < points_.count(); ++point) {
            if (cluster_of_[point] != nearest(centres(), points_[point])) {
                return false;
            }
        }
        return true;
    }

private:
    struct alignas(64) Writer {
        typename E::Mutex mutex;
    };
    struct State {
        typename E::Mutex mutex;
        typename E::template Durable<std::uint64_t> iterations;
        typename E::template Durable<bool> has_converged;
        Centres centres[2];
        Writer writers[16];  ///< guards the clusters of the points that thread i works on
    };
    struct alignas(64) ThreadSums {
        ClusterSums sums;
    };

    void assign(Context& context, const Centres& old, std::uint64_t first, std::uint64_t last, ClusterSums& sums)
    {
        typename E::template Operation<1> operation;
        operation.lock(state_->writers[context.thread].mutex);
        E::about_to_write(cluster_of_ + first, (last - first) * sizeof *cluster_of_);
        for (std::uint64_t point = first; point < last; ++point) {
            const std::uint32_t cluster = nearest(old, points_[point]);
            cluster_of_[point] = cluster;
            ++sums.points[cluster];
            for (std::size_t axis = 0; axis < dimensions; ++axis) {
                sums.coordinates[cluster][axis] += points_[point][axis];
            }
        }
        context.changed_bytes += (last - first) * sizeof *cluster_of_;
    }
    void finish_iteration(Context& context, std::uint64_t number, const Centres& old)
    {
        ClusterSums all = {};
        for (const ThreadSums& one : sums_) {
            for (std::uint32_t cluster = 0; cluster < clusters; ++cluster) {
                all.points[cluster] += one.sums.points[cluster];
                for (std::size_t axis = 0; axis < dimensions; ++axis) {
                    all.coordinates[cluster][axis] += one.sums.coordinates[cluster][axis];
                }
            }
        }
        const Centres centres = means(all, old);
        publish(number, centres, centres.at == old.at || number == iterations_max);
        context.changed_bytes += sizeof centres;
    }
    void publish(std::uint64_t iterations, const Centres& centres, bool has_converged)
    {
        {
            typename E::template Operation<1> operation;
            operation.lock(state_->mutex);
            Centres& next = state_->centres[iterations % 2];
            E::about_to_write(&next, sizeof next);
            next = centres;
            state_->iterations = iterations;
            state_->has_converged = has_converged;
        }
        iterations_.store(iterations, std::memory_order_relaxed);
    }

    const ClusteredPoints& points_;
    Team& team_;
    std::vector<ThreadSums> sums_;
    State* state_;
    std::uint32_t* cluster_of_;
    std::atomic<std::uint64_t> iterations_;
};

class ContinuingKmeansJob final : public EngineJob {
public:
    ContinuingKmeansJob(const Shape& shape, std::uint64_t points) : EngineJob(shape), points_wanted_(points) {}

    void load() override
    {
        points_.emplace(points_wanted_, dimensions, clusters);
        kmeans_ = std::make_unique<ContinuingKmeans<E>>("bench.kmeans_continuing", *points_, *this);
    }
    void prepare() override { kmeans_->clear(); }
    void work(Context& context) override { kmeans_->work(context); }
    std::string fault() override
    {
        if (!expected_) {
            expect();
        }
        if (!kmeans_->has_converged() || kmeans_->iterations() != expected_iterations_) {
            return std::to_string(kmeans_->iterations()) + " iterations instead of " + std::to_string(expected_iterations_);
        }
        if (kmeans_->centres().at != expected_->at) {
            return "the centres differ from those of one thread";
        }
        return kmeans_->has_nearest_clusters() ? std::string() : "a point does not lie in the cluster of the nearest centre";
    }
    std::uint64_t items() const override { return points_wanted_; }
    bool goes_on_after_a_crash() const override { return !kmeans_->has_converged(); }
    std::uint64_t steps_done() const override { return kmeans_->iterations(); }

private:
    void expect()
    {
        Team alone(1);
        Context context;
        ContinuingKmeans<VolatileEngine> reference("bench.expected", *points_, alone);
        reference.clear();
        reference.work(context);
        expected_ = reference.centres();
        expected_iterations_ = reference.iterations();
    }

    std::uint64_t points_wanted_;
    std::optional<ClusteredPoints> points_;
    std::unique_ptr<ContinuingKmeans<E>> kmeans_;
    std::optional<Centres> expected_;
    std::uint64_t expected_iterations_ = 0;
};

}  // namespace

Work make_kmeans_continuing(const Shape& shape)
{
    const std::uint64_t points = input_size(shape, 200'000, 2000, {clusters, 100'000'000, "points"});
    return {nullptr, std::make_unique<ContinuingKmeansJob>(shape, points)};
}

}  // namespace bench
