#pragma once
// Zipf-distributed numbers as YCSB draws them: Gray et al., "Quickly Generating Billion-Record Synthetic Databases"
// (SIGMOD 1994), section 3.2; the constant 0.99 is YCSB's.

#include <cmath>
#include <cstdint>

#include "random.hpp"

namespace bench {

class Zipf {
public:
    /// Numbers below `count` (at least 2); 0 is the most frequent one. Number i comes with a frequency of about 1 / (i + 1)^theta:
    /// exactly so for 0 and 1, the others from a curve through them, of which the next few are off by up to a quarter.
    explicit Zipf(std::uint64_t count, double theta = 0.99)
        : count_(count), theta_(theta), alpha_(1 / (1 - theta)), zeta_(sum(count, theta)),
          eta_((1 - std::pow(2.0 / static_cast<double>(count), 1 - theta)) / (1 - sum(2, theta) / zeta_))
    {
    }

    std::uint64_t next(Random& random) const noexcept
    {
        const double u = static_cast<double>(random.next() >> 11) * 0x1p-53;
        const double scaled = u * zeta_;
        if (scaled < 1) {
            return 0;
        }
        if (scaled < 1 + std::pow(0.5, theta_)) {
            return 1;
        }
        const auto drawn = static_cast<std::uint64_t>(static_cast<double>(count_) * std::pow(eta_ * u - eta_ + 1, alpha_));
        return drawn < count_ ? drawn : count_ - 1;
    }
    /// The frequent numbers spread over the whole range, as YCSB's "scrambled" generator does.
    std::uint64_t next_scrambled(Random& random) const noexcept
    {
        std::uint64_t hash = next(random) + 1;
        hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15u;
        hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
        return (hash >> 32) * count_ >> 32;
    }

private:
    /// The sum of 1 / i^theta over i from 1 to count. Added up are the first terms only; the rest is their integral with two terms of
    /// Euler and Maclaurin's correction, which leaves less than 1e-12: a restart is timed, and a million powers take 30 ms.
    static double sum(std::uint64_t count, double theta)
    {
        constexpr std::uint64_t added = 1000;
        double total = 0;
        for (std::uint64_t i = 1; i <= (count < added ? count : added); ++i) {
            total += std::pow(static_cast<double>(i), -theta);
        }
        if (count > added) {
            const auto low = static_cast<double>(added);
            const auto high = static_cast<double>(count);
            total += (std::pow(high, 1 - theta) - std::pow(low, 1 - theta)) / (1 - theta);
            total += (std::pow(high, -theta) - std::pow(low, -theta)) / 2;
            total += theta / 12 * (std::pow(low, -theta - 1) - std::pow(high, -theta - 1));
        }
        return total;
    }

    std::uint64_t count_;
    double theta_;
    double alpha_;
    double zeta_;
    double eta_;
};

}  // namespace bench
