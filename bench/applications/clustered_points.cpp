#include "clustered_points.hpp"

#include "../harness/random.hpp"

namespace bench {

ClusteredPoints::ClusteredPoints(std::uint64_t count, std::size_t dimensions, unsigned clusters)
    : dimensions_(dimensions), coordinates_(count * dimensions)
{
    Random random(11);
    std::vector<std::uint64_t> centres(clusters * dimensions);
    for (std::uint64_t& coordinate : centres) {
        coordinate = random.below(768);
    }
    for (std::uint64_t point = 0; point < count; ++point) {
        const std::uint64_t* centre = &centres[random.below(clusters) * dimensions];
        for (std::size_t axis = 0; axis < dimensions; ++axis) {
            // Four throws: a bell around 126, wide enough for clusters to overlap.
            const std::uint64_t noise = random.below(64) + random.below(64) + random.below(64) + random.below(64);
            coordinates_[point * dimensions + axis] = static_cast<std::int32_t>(centre[axis] + noise);
        }
    }
}

}  // namespace bench
