// Online clustering of a stream of points, in the shape of PARSEC's streamcluster: barriers, and little else.
//
// The stream is read in blocks. Each block is clustered, and only its centres are kept, each with the number of points that it
// stands for; in the end the kept centres are clustered in the same way. Durable: what the search works on (local_search.hpp), the
// kept centres and the result.

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../engines/volatile_engine.hpp"
#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "input_size.hpp"
#include "inputs.hpp"
#include "local_search.hpp"

namespace bench {
namespace {

constexpr unsigned dimensions = 16;
constexpr std::uint64_t block_points = 4000;
constexpr unsigned clouds = 14;

/// Centres in durable memory, each with the weight of its points.
template <MemoryEngine E>
class CentreList {
public:
    CentreList(const std::string& name, std::uint64_t capacity)
        : state_(static_cast<State*>(E::root(name.c_str(), sizeof(State)))),
          coordinates_(static_cast<std::int32_t*>(E::root((name + ".coordinates").c_str(), capacity * centre_bytes))),
          weights_(static_cast<std::int64_t*>(E::root((name + ".weights").c_str(), capacity * sizeof(std::int64_t))))
    {
    }

    void clear()
    {
        typename E::template Operation<1> operation;
        operation.lock(state_->mutex);
        state_->count = std::uint64_t{0};
    }
    /// The centres that a search has found, each moved to the mean of its points: one operation.
    void append(const WeightedPoints& points, const LocalSearch<E>& search)
    {
        const std::size_t found = search.centres().size();
        std::vector<std::size_t> number_of(points.count());
        for (std::size_t i = 0; i < found; ++i) {
            number_of[search.centres()[i]] = i;
        }
        std::vector<std::int64_t> sums(found * dimensions);
        std::vector<std::int64_t> weights(found);
        for (std::uint32_t point = 0; point < points.count(); ++point) {
            const std::size_t centre = number_of[search.membership(point).centre];
            weights[centre] += points.weight(point);
            for (unsigned axis = 0; axis < dimensions; ++axis) {
                sums[centre * dimensions + axis] += points.weight(point) * points.at(point)[axis];
            }
        }
        typename E::template Operation<1> operation;
        operation.lock(state_->mutex);
        const std::uint64_t before = state_->count;
        std::int32_t* const coordinates = coordinates_ + before * dimensions;
        E::about_to_write(coordinates, found * centre_bytes);
        E::about_to_write(weights_ + before, found * sizeof(std::int64_t));
        for (std::size_t i = 0; i < sums.size(); ++i) {
            coordinates[i] = static_cast<std::int32_t>(sums[i] / weights[i / dimensions]);
        }
        std::copy(weights.begin(), weights.end(), weights_ + before);
        state_->count = before + found;
    }
    [[nodiscard]] WeightedPoints points() const
    {
        const std::uint64_t count = state_->count;
        return {{coordinates_, count * dimensions}, dimensions, {weights_, count}};
    }

private:
    static constexpr std::size_t centre_bytes = dimensions * sizeof(std::int32_t);

    struct State {
        typename E::Mutex mutex;
        typename E::template Durable<std::uint64_t> count;
    };

    State* state_;
    std::int32_t* coordinates_;
    std::int64_t* weights_;
};

template <MemoryEngine E>
class StreamClustering {
public:
    static constexpr typename LocalSearch<E>::Wanted wanted = {10, 20};

    StreamClustering(const std::string& name, const std::vector<std::int32_t>& stream, Team& team)
        : stream_{stream, dimensions, {}}, kept_(name + ".kept", stream_.count()), result_(name + ".result", stream_.count()),
          search_(array<typename LocalSearch<E>::Membership>(name + ".memberships", stream_.count()),
                  array<typename LocalSearch<E>::Writer>(name + ".writers", 16), team)
    {
    }

    void clear()
    {
        kept_.clear();
        result_.clear();
    }
    /// All threads of the team; thread 0 leads.
    void work(Context& context)
    {
        if (context.thread != 0) {
            search_.follow(context.thread);
            return;
        }
        for (std::uint64_t first = 0; first < stream_.count(); first += block_points) {
            const std::uint64_t count = std::min(block_points, stream_.count() - first);
            cluster({stream_.coordinates.subspan(first * dimensions, count * dimensions), dimensions, {}}, first + 1, kept_);
        }
        cluster(kept_.points(), 0, result_);
        search_.dismiss();
        context.changed_bytes += kept_.points().coordinates.size_bytes() + stream_.count() * sizeof(std::uint32_t);
    }
    [[nodiscard]] WeightedPoints result() const { return result_.points(); }

private:
    template <class T>
    static T* array(const std::string& name, std::uint64_t count)
    {
        return static_cast<T*>(E::root(name.c_str(), count * sizeof(T)));
    }
    void cluster(const WeightedPoints& points, std::uint64_t seed, CentreList<E>& centres)
    {
        search_.lead(points, wanted, seed + 1);
        centres.append(points, search_);
    }

    WeightedPoints stream_;
    CentreList<E> kept_;
    CentreList<E> result_;
    LocalSearch<E> search_;
};

class Streamcluster final : public EngineJob {
public:
    Streamcluster(const Shape& shape, std::uint64_t points) : EngineJob(shape), points_(points) {}

    void load() override
    {
        stream_ = make_clouds(points_, dimensions, clouds);
        clustering_ = std::make_unique<StreamClustering<E>>("bench.streamcluster", stream_, *this);
    }
    void prepare() override { clustering_->clear(); }
    void work(Context& context) override { clustering_->work(context); }
    std::string fault() override
    {
        if (!expected_) {
            Team alone(1);
            Context context;
            expected_ = std::make_unique<StreamClustering<VolatileEngine>>("bench.expected", stream_, alone);
            expected_->clear();
            expected_->work(context);
        }
        const WeightedPoints found = clustering_->result();
        std::int64_t weight = 0;
        for (const std::int64_t one : found.weights) {
            weight += one;
        }
        if (weight != static_cast<std::int64_t>(points_)) {
            return "the centres stand for " + std::to_string(weight) + " points instead of " + std::to_string(points_);
        }
        const WeightedPoints expected = expected_->result();
        return std::ranges::equal(found.coordinates, expected.coordinates) && std::ranges::equal(found.weights, expected.weights)
                   ? std::string()
                   : "the centres are not those that one thread finds";
    }
    std::uint64_t items() const override { return points_; }

private:
    std::uint64_t points_;
    std::vector<std::int32_t> stream_;
    std::unique_ptr<StreamClustering<E>> clustering_;
    std::unique_ptr<StreamClustering<VolatileEngine>> expected_;
};

}  // namespace

Work make_streamcluster(const Shape& shape)
{
    return {nullptr, std::make_unique<Streamcluster>(shape, input_size(shape, 8000, 500, {20, 100'000'000, "points"}))};
}

}  // namespace bench
