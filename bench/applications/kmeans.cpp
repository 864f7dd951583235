// k-means (Lloyd's): points in clusters, each around its mean, until no point changes its cluster.
//
// Durable: each point's membership, each thread's own sums of its points by cluster, which grow by 512 points an operation,
// the centroids, and how far the computation is. Coordinates are integers, so the result is the same for any number of threads.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "centroids.hpp"
#include "inputs.hpp"
#include "kept_array.hpp"

namespace bench {
namespace {

using namespace kmeans;

constexpr std::uint64_t points_each = 512;  // in one operation: 8 KiB
constexpr std::uint64_t iterations_max = 12;
constexpr std::uint32_t no_cluster = UINT32_MAX;

class Kmeans final : public EngineJob {
public:
    Kmeans(const Shape& shape, std::uint64_t points) : EngineJob(shape), points_(std::max<std::uint64_t>(points, clusters)) {}

    void load() override
    {
        input_ = make_clouds(points_, dimensions, clusters);
        compute_expected();
        memberships_ = kept_array<E, std::uint32_t>("bench.kmeans.memberships", points_);
        own_ = kept_array<E, Own>("bench.kmeans.threads", shape_.threads);
        state_ = kept_array<E, State>("bench.kmeans.state", 1);
    }
    void prepare() override
    {
        refill<E>(state_->mutex, memberships_, points_ * sizeof(std::uint32_t), 0xff);
        E::Operation<1> operation;
        operation.lock(state_->mutex);
        E::about_to_write(&state_->centroids, sizeof state_->centroids);
        state_->centroids = first_centroids(input_);
        state_->iterations = std::uint64_t{0};
        state_->is_done = false;
    }
    void work(Context& context) override
    {
        const Part part = part_of(context.thread, points_);
        Own& own = own_[context.thread];
        do {
            refill<E>(own.mutex, &own.sums, sizeof own.sums);
            for (std::uint64_t first = part.first; first < part.last; first += points_each) {
                assign(context, own, first, std::min(first + points_each, part.last));
            }
            wait_for_all();
            if (context.thread == 0) {
                finish_iteration(context);
            }
            wait_for_all();
        } while (!state_->is_done);
    }
    std::string fault() override
    {
        if (!std::equal(expected_.begin(), expected_.end(), memberships_)) {
            return "points are in other clusters than they should be";
        }
        const std::int32_t* at = &state_->centroids.at[0][0];
        return std::equal(at, at + clusters * dimensions, &expected_centroids_.at[0][0]) ? std::string() : "the centroids are wrong";
    }
    [[nodiscard]] std::uint64_t items() const override { return points_; }

private:
    struct alignas(64) Own {
        E::Mutex mutex;
        Sums sums;
    };
    struct State {
        E::Mutex mutex;
        E::Durable<std::uint64_t> iterations;
        E::Durable<bool> is_done;
        Centroids centroids;
    };

    [[nodiscard]] const std::int32_t* point(std::uint64_t i) const noexcept { return input_.data() + i * dimensions; }

    /// One operation. What is near is found before it, so that it is short.
    void assign(Context& context, Own& own, std::uint64_t first, std::uint64_t last)
    {
        std::uint32_t found[points_each];
        for (std::uint64_t i = first; i < last; ++i) {
            found[i - first] = nearest(state_->centroids, point(i));
        }
        E::Operation<1> operation;
        operation.lock(own.mutex);
        E::about_to_write(&own.sums, sizeof own.sums);
        if (!std::equal(found, found + (last - first), memberships_ + first)) {
            E::about_to_write(memberships_ + first, (last - first) * sizeof(std::uint32_t));
        }
        for (std::uint64_t i = first; i < last; ++i) {
            const std::uint32_t cluster = found[i - first];
            const bool is_new = memberships_[i] != cluster;
            if (is_new) {
                memberships_[i] = cluster;
                context.changed_bytes += sizeof cluster;
            }
            own.sums.add(point(i), cluster, is_new);
        }
        context.changed_bytes += sizeof own.sums;
    }

    void finish_iteration(Context& context)
    {
        E::Operation<1> operation;
        operation.lock(state_->mutex);
        Sums sums{};
        for (unsigned thread = 0; thread < shape_.threads; ++thread) {
            sums.add(own_[thread].sums);
        }
        E::about_to_write(&state_->centroids, sizeof state_->centroids);
        sums.move(state_->centroids);
        state_->iterations = state_->iterations + 1;
        state_->is_done = sums.changed == 0 || state_->iterations == iterations_max;
        context.changed_bytes += sizeof state_->centroids;
    }

    /// By one thread, in ordinary memory, distances in floating point (exact: they are integers below 2^53).
    void compute_expected()
    {
        expected_.assign(points_, no_cluster);
        expected_centroids_ = first_centroids(input_);
        bool changed = true;
        for (std::uint64_t iteration = 0; changed && iteration < iterations_max; ++iteration) {
            changed = false;
            std::vector<std::vector<std::uint64_t>> members(clusters);
            for (std::uint64_t i = 0; i < points_; ++i) {
                double distances[clusters] = {};
                for (unsigned c = 0; c < clusters * dimensions; ++c) {
                    const double difference = point(i)[c % dimensions] - (&expected_centroids_.at[0][0])[c];
                    distances[c / dimensions] += difference * difference;
                }
                const auto cluster = static_cast<std::uint32_t>(std::min_element(distances, distances + clusters) - distances);
                changed |= expected_[i] != cluster;
                expected_[i] = cluster;
                members[cluster].push_back(i);
            }
            for (unsigned c = 0; c < clusters * dimensions; ++c) {
                const auto& own = members[c / dimensions];
                std::int64_t sum = 0;
                for (const std::uint64_t i : own) {
                    sum += point(i)[c % dimensions];
                }
                if (!own.empty()) {
                    (&expected_centroids_.at[0][0])[c] = static_cast<std::int32_t>(sum / static_cast<std::int64_t>(own.size()));
                }
            }
        }
    }

    const std::uint64_t points_;
    std::vector<std::int32_t> input_;
    std::vector<std::uint32_t> expected_;
    Centroids expected_centroids_{};
    std::uint32_t* memberships_ = nullptr;
    Own* own_ = nullptr;
    State* state_ = nullptr;
};

}  // namespace

/// size: points.
Work make_kmeans(const Shape& shape) { return {nullptr, std::make_unique<Kmeans>(shape, shape.size_or(100'000, 4000))}; }

}  // namespace bench
