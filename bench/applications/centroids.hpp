#pragma once
// The arithmetic of k-means. Coordinates are whole numbers from 0 to 8191 (inputs.hpp, make_clouds), so every sum is exact,
// whatever the order in which threads add up.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace bench::kmeans {

inline constexpr unsigned dimensions = 4;
inline constexpr unsigned clusters = 32;

struct Centroids {
    std::int32_t at[clusters][dimensions];
    bool operator==(const Centroids&) const = default;
};
struct Sums {
    std::int64_t of[clusters][dimensions];
    std::uint64_t points[clusters];
    std::uint64_t changed;  ///< points that changed their cluster

    void add(const std::int32_t* point, std::uint32_t cluster, bool is_new) noexcept
    {
        for (unsigned d = 0; d < dimensions; ++d) {
            of[cluster][d] += point[d];
        }
        points[cluster] += 1;
        changed += is_new;
    }
    void add(const Sums& other) noexcept
    {
        for (unsigned c = 0; c < clusters; ++c) {
            for (unsigned d = 0; d < dimensions; ++d) {
                of[c][d] += other.of[c][d];
            }
            points[c] += other.points[c];
        }
        changed += other.changed;
    }
    /// A cluster without points stays where it is.
    void move(Centroids& centroids) const noexcept
    {
        for (unsigned c = 0; c < clusters; ++c) {
            for (unsigned d = 0; d < dimensions && points[c] != 0; ++d) {
                centroids.at[c][d] = static_cast<std::int32_t>(of[c][d] / static_cast<std::int64_t>(points[c]));
            }
        }
    }
};

/// The nearest centroid; the first of several that are equally near.
inline std::uint32_t nearest(const Centroids& centroids, const std::int32_t* point) noexcept
{
    std::uint32_t best = 0;
    std::int32_t best_distance = INT32_MAX;
    for (std::uint32_t c = 0; c < clusters; ++c) {
        std::int32_t distance = 0;
        for (unsigned d = 0; d < dimensions; ++d) {
            const std::int32_t difference = point[d] - centroids.at[c][d];
            distance += difference * difference;  // 4 * 8191^2 is below 2^31
        }
        if (distance < best_distance) {
            best_distance = distance;
            best = c;
        }
    }
    return best;
}

/// The first points of the input; it has at least as many as there are clusters.
inline Centroids first_centroids(const std::vector<std::int32_t>& coordinates)
{
    Centroids centroids;
    std::copy_n(coordinates.begin(), clusters * dimensions, &centroids.at[0][0]);
    return centroids;
}

}  // namespace bench::kmeans
