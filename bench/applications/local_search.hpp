#pragma once
// Facility location by local search: the core of online k-median clustering (O'Callaghan, Mishra, Meyerson, Guha and Motwani,
// "Streaming-Data Algorithms for High-Quality Clustering", ICDE 2002; PARSEC's streamcluster does the same).
//
// Some of the points are centres. A point costs its weight times the squared distance to its centre, each centre costs `price`. A
// move opens one more centre, hands over the points that are nearer to it, and closes centres that are not worth their price any
// more. Moves that lower the total are made until there are hardly any; the price is found by bisection, so that about as many
// centres are open as are wanted.
//
// One thread leads: it decides. All threads of the team, each for its part of the points, do what it says, between two
// barriers. Durable: each point's centre and cost, written by the thread whose part it is, and which points are centres, written
// by the leader. All costs are whole numbers, so every decision is the same for any number of threads.

#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../engines/engine.hpp"
#include "../harness/random.hpp"
#include "../workloads/team.hpp"

namespace bench {

/// The points to cluster. A point without a weight has weight 1.
struct WeightedPoints {
    std::span<const std::int32_t> coordinates;
    std::size_t dimensions = 1;
    std::span<const std::int64_t> weights;

    [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(coordinates.size() / dimensions); }
    [[nodiscard]] std::int64_t weight(std::uint32_t point) const noexcept { return weights.empty() ? 1 : weights[point]; }
    [[nodiscard]] const std::int32_t* at(std::uint32_t point) const noexcept { return &coordinates[point * dimensions]; }
    /// The cost of `point` with the centre `centre`.
    [[nodiscard]] std::int64_t cost(std::uint32_t point, std::uint32_t centre) const noexcept
    {
        std::int64_t distance = 0;
        for (std::size_t axis = 0; axis < dimensions; ++axis) {
            const std::int64_t apart = at(point)[axis] - at(centre)[axis];
            distance += apart * apart;
        }
        return distance * weight(point);
    }
};

template <MemoryEngine E>
class LocalSearch {
public:
    struct Membership {
        std::uint32_t centre;  ///< a point
        std::uint32_t is_centre;
        std::int64_t cost;
    };
    struct alignas(64) Writer {
        typename E::Mutex mutex;  ///< guards the memberships in the part of one thread
    };
    /// How many centres are wanted.
    struct Wanted {
        std::uint32_t minimum;
        std::uint32_t maximum;
    };

    /// Durable memory for as many points as are clustered at a time, and for as many writers as the team has threads.
    LocalSearch(Membership* memberships, Writer* writers, Team& team)
        : memberships_(memberships), writers_(writers), team_(team), threads_(team.threads())
    {
    }

    /// The leader's: clusters the points, while the other threads follow(). The same `seed` leads to the same centres.
    void lead(const WeightedPoints& points, Wanted wanted, std::uint64_t seed)
    {
        points_ = points;
        random_ = Random(seed);
        centres_.clear();
        for (Own& own : threads_) {
            own.saved_by_closing.resize(points.count());
        }
        open(0);
        std::int64_t high = 1 + tell(Order::add_up, 0);
        std::int64_t low = 0;
        while (high - low > 1 + high / 1000) {
            price_ = low + (high - low) / 2;
            scatter();
            improve(wanted);
            if (centres_.size() > wanted.maximum) {
                low = price_;
            } else if (centres_.size() < wanted.minimum) {
                high = price_;
            } else {
                break;
            }
        }
    }
    /// The leader's, once there is nothing more to do: follow() returns.
    void dismiss() { (void)tell(Order::end, 0); }
    /// The other threads'.
    void follow(unsigned thread)
    {
        while (true) {
            team_.wait_for_all();
            if (order_ == Order::end) {
                team_.wait_for_all();
                return;
            }
            obey(thread);
            team_.wait_for_all();
        }
    }

    /// The centres of the last lead(). Each point's centre is its membership's.
    [[nodiscard]] const std::vector<std::uint32_t>& centres() const noexcept { return centres_; }
    [[nodiscard]] const Membership& membership(std::uint32_t point) const noexcept { return memberships_[point]; }

private:
    enum class Order { join_first, join_nearer, add_up, weigh, move, end };

    /// A thread's results of the last order.
    struct alignas(64) Own {
        std::int64_t sum = 0;
        /// By centre: what its points that would stay would cost more if they had to go to the candidate. Zero between two orders.
        std::vector<std::int64_t> saved_by_closing;
    };

    /// Gives an order, and does the leader's part of it; the sum of all threads' sums.
    std::int64_t tell(Order order, std::uint32_t candidate)
    {
        order_ = order;
        candidate_ = candidate;
        team_.wait_for_all();
        if (order != Order::end) {
            obey(0);
        }
        team_.wait_for_all();
        std::int64_t sum = 0;
        for (const Own& own : threads_) {
            sum += own.sum;
        }
        return sum;
    }

    void obey(unsigned thread)
    {
        Own& own = threads_[thread];
        const auto [first, last] = team_.part_of(thread, points_.count());
        own.sum = 0;
        if (order_ == Order::weigh || order_ == Order::add_up) {
            for (auto point = static_cast<std::uint32_t>(first); point < last; ++point) {
                own.sum += order_ == Order::weigh ? weigh(own, point) : memberships_[point].cost;
            }
            return;
        }
        typename E::template Operation<1> operation;
        operation.lock(writers_[thread].mutex);
        for (auto point = static_cast<std::uint32_t>(first); point < last; ++point) {
            Membership& old = memberships_[point];
            const Membership now = after_order(point, old);
            if (now.centre != old.centre || now.cost != old.cost || now.is_centre != old.is_centre) {
                E::about_to_write(&old, sizeof old);
                old = now;
            }
        }
    }
    /// The saving of this point's cost if the candidate were opened; 0 if the point would stay.
    std::int64_t weigh(Own& own, std::uint32_t point) const
    {
        const Membership& old = memberships_[point];
        const std::int64_t saved = old.cost - points_.cost(point, candidate_);
        if (saved < 0) {
            own.saved_by_closing[old.centre] += saved;
            return 0;
        }
        return saved;
    }
    [[nodiscard]] Membership after_order(std::uint32_t point, const Membership& old) const
    {
        const std::int64_t cost = points_.cost(point, candidate_);
        const bool joins = order_ == Order::join_first || cost < old.cost || (order_ == Order::move && is_closing_[old.centre] != 0);
        const bool stays_centre = order_ != Order::join_first && old.is_centre != 0 && !(order_ == Order::move && is_closing_[point] != 0);
        return {joins ? candidate_ : old.centre, point == candidate_ || stays_centre, joins ? cost : old.cost};
    }

    /// Makes the candidate a centre: the only one if it is the first, otherwise for the points that are nearer to it.
    void open(std::uint32_t candidate)
    {
        (void)tell(centres_.empty() ? Order::join_first : Order::join_nearer, candidate);
        centres_.push_back(candidate);
    }

    /// Begins again: goes through the points, and opens each with a probability of its cost by the price.
    void scatter()
    {
        centres_.clear();
        open(static_cast<std::uint32_t>(random_.below(points_.count())));
        for (std::uint32_t point = 0; point < points_.count(); ++point) {
            const double chance = static_cast<double>(random_.next() >> 11) * 0x1p-53;
            if (chance * static_cast<double>(price_) < static_cast<double>(memberships_[point].cost)) {
                open(point);
            }
        }
    }
    /// Moves until of 3 k log2(k) candidates in a row hardly any is worth it, where k centres are wanted.
    void improve(Wanted wanted)
    {
        const unsigned tries = 3 * wanted.minimum * static_cast<unsigned>(std::bit_width(wanted.minimum));
        for (std::int64_t saved = 1, total = 1; saved * 10 > total;) {
            saved = 0;
            for (unsigned i = 0; i < tries; ++i) {
                saved += try_move(static_cast<std::uint32_t>(random_.below(points_.count())));
            }
            total = tell(Order::add_up, 0) + price_ * static_cast<std::int64_t>(centres_.size());
        }
    }
    /// The saving of the move: 0 if it was not made.
    std::int64_t try_move(std::uint32_t candidate)
    {
        if (memberships_[candidate].is_centre != 0) {
            return 0;
        }
        std::int64_t saved = tell(Order::weigh, candidate) - price_;
        std::vector<std::uint32_t> kept;
        is_closing_.resize(points_.count());
        for (const std::uint32_t centre : centres_) {
            std::int64_t by_closing = price_;
            for (Own& own : threads_) {
                by_closing += own.saved_by_closing[centre];
                own.saved_by_closing[centre] = 0;
            }
            is_closing_[centre] = by_closing > 0;
            if (by_closing > 0) {
                saved += by_closing;
            } else {
                kept.push_back(centre);
            }
        }
        if (saved > 0) {
            (void)tell(Order::move, candidate);
            kept.push_back(candidate);
        }
        for (const std::uint32_t centre : centres_) {
            is_closing_[centre] = 0;
        }
        if (saved <= 0) {
            return 0;
        }
        centres_ = std::move(kept);
        return saved;
    }

    Membership* memberships_;
    Writer* writers_;
    Team& team_;
    WeightedPoints points_;
    Random random_;
    std::int64_t price_ = 0;
    std::vector<std::uint32_t> centres_;
    std::vector<char> is_closing_;  ///< by point; of the move that is being made
    std::vector<Own> threads_;
    Order order_ = Order::end;      ///< written by the leader before a barrier
    std::uint32_t candidate_ = 0;
};

}  // namespace bench
