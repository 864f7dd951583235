// k-means until no centroid moves any more; after a crash it continues at the last durable iteration.
//
// Durable: the centroids, twice, and how many iterations are done; and of each point the cluster that it was put into last. An
// iteration reads the one copy of the centroids and ends with one operation that writes the other and raises the number. The
// points' clusters follow from the centroids, so it does no harm that a crash leaves them an iteration ahead of the number.
//
// Coordinates are whole numbers: the sums are exact, and the centroids the same to the bit with any number of threads.

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../engines/volatile_engine.hpp"
#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "centroids.hpp"
#include "input_size.hpp"
#include "inputs.hpp"

namespace bench {
namespace {

using namespace kmeans;

constexpr std::uint64_t iterations_max = 1000;
constexpr std::uint64_t points_per_operation = 1024;

template <MemoryEngine E>
class ContinuingKmeans {
public:
    ContinuingKmeans(const std::string& name, const std::vector<std::int32_t>& coordinates, Team& team)
        : coordinates_(coordinates), team_(team), sums_(team.threads()), state_(static_cast<State*>(E::root(name.c_str(), sizeof(State)))),
          cluster_of_(static_cast<std::uint32_t*>(E::root((name + ".clusters").c_str(), points() * sizeof(std::uint32_t)))),
          iterations_(state_->iterations)
    {
    }

    /// No thread is working.
    void clear() { publish(0, first_centroids(coordinates_), false); }

    /// Until it has converged, from where it is. All threads of the team.
    void work(Context& context)
    {
        while (!state_->has_converged) {
            const std::uint64_t done = state_->iterations;
            const Centroids& old = state_->centroids[done % 2];
            Sums& sums = sums_[context.thread].sums = {};
            const auto [first, last] = team_.part_of(context.thread, points());
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
    [[nodiscard]] const Centroids& centroids() const { return state_->centroids[state_->iterations % 2]; }
    /// True if each point lies in the cluster whose centroid is nearest.
    [[nodiscard]] bool has_nearest_clusters() const
    {
        for (std::uint64_t point = 0; point < points(); ++point) {
            if (cluster_of_[point] != nearest(centroids(), point_at(point))) {
                return false;
            }
        }
        return true;
    }

private:
    [[nodiscard]] std::uint64_t points() const noexcept { return coordinates_.size() / dimensions; }
    [[nodiscard]] const std::int32_t* point_at(std::uint64_t number) const noexcept { return &coordinates_[number * dimensions]; }

    struct alignas(64) Writer {
        typename E::Mutex mutex;
    };
    struct State {
        typename E::Mutex mutex;
        typename E::template Durable<std::uint64_t> iterations;
        typename E::template Durable<bool> has_converged;
        Centroids centroids[2];
        Writer writers[16];  ///< guards the clusters of the points that thread i works on
    };
    struct alignas(64) ThreadSums {
        Sums sums;
    };

    void assign(Context& context, const Centroids& old, std::uint64_t first, std::uint64_t last, Sums& sums)
    {
        typename E::template Operation<1> operation;
        operation.lock(state_->writers[context.thread].mutex);
        E::about_to_write(cluster_of_ + first, (last - first) * sizeof *cluster_of_);
        for (std::uint64_t point = first; point < last; ++point) {
            const std::uint32_t cluster = nearest(old, point_at(point));
            cluster_of_[point] = cluster;
            sums.add(point_at(point), cluster, false);
        }
        context.changed_bytes += (last - first) * sizeof *cluster_of_;
    }
    void finish_iteration(Context& context, std::uint64_t number, const Centroids& old)
    {
        Sums all = {};
        for (const ThreadSums& one : sums_) {
            all.add(one.sums);
        }
        Centroids centroids = old;
        all.move(centroids);
        publish(number, centroids, centroids == old || number == iterations_max);
        context.changed_bytes += sizeof centroids;
    }
    void publish(std::uint64_t iterations, const Centroids& centroids, bool has_converged)
    {
        {
            typename E::template Operation<1> operation;
            operation.lock(state_->mutex);
            Centroids& next = state_->centroids[iterations % 2];
            E::about_to_write(&next, sizeof next);
            next = centroids;
            state_->iterations = iterations;
            state_->has_converged = has_converged;
        }
        iterations_.store(iterations, std::memory_order_relaxed);
    }

    const std::vector<std::int32_t>& coordinates_;
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
        points_ = make_clouds(points_wanted_, dimensions, clusters / 4);  // fewer clouds than clusters: it takes long
        kmeans_ = std::make_unique<ContinuingKmeans<E>>("bench.kmeans_continuing", points_, *this);
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
        if (kmeans_->centroids() != *expected_) {
            return "the centroids differ from those of one thread";
        }
        return kmeans_->has_nearest_clusters() ? std::string() : "a point does not lie in the cluster of the nearest centroid";
    }
    std::uint64_t items() const override { return points_wanted_; }
    bool goes_on_after_a_crash() const override { return !kmeans_->has_converged(); }
    std::uint64_t steps_done() const override { return kmeans_->iterations(); }

private:
    void expect()
    {
        Team alone(1);
        Context context;
        ContinuingKmeans<VolatileEngine> reference("bench.expected", points_, alone);
        reference.clear();
        reference.work(context);
        expected_ = reference.centroids();
        expected_iterations_ = reference.iterations();
    }

    std::uint64_t points_wanted_;
    std::vector<std::int32_t> points_;
    std::unique_ptr<ContinuingKmeans<E>> kmeans_;
    std::optional<Centroids> expected_;
    std::uint64_t expected_iterations_ = 0;
};

}  // namespace

Work make_kmeans_continuing(const Shape& shape)
{
    const std::uint64_t points = input_size(shape, 100'000, 2000, {clusters, 100'000'000, "points"});
    return {nullptr, std::make_unique<ContinuingKmeansJob>(shape, points)};
}

}  // namespace bench
