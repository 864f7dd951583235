#include "inputs.hpp"

#include <algorithm>

#include "../harness/random.hpp"

namespace bench {
namespace {

/// Roughly normal around 0, from -2 * spread to 2 * spread.
std::int32_t noise(Random& random, std::int32_t spread) noexcept
{
    std::int32_t sum = 0;
    for (int i = 0; i < 4; ++i) {
        sum += static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(spread)));
    }
    return sum - 2 * spread;
}

}  // namespace

std::vector<std::uint8_t> make_pixels(std::size_t pixels)
{
    Random random(11);
    std::vector<std::uint8_t> bytes(pixels * 3);
    int colour[3] = {128, 128, 128};
    for (std::size_t i = 0; i < pixels; ++i) {
        const std::uint64_t bits = random.next() >> 32;
        const int change = static_cast<int>(bits & 15) - 8 + static_cast<int>(bits >> 4 & 1);
        for (unsigned channel = 0; channel < 3; ++channel) {
            const int own = static_cast<int>(bits >> (8 + 4 * channel) & 7) - 3;
            colour[channel] = std::clamp(colour[channel] + change + own, 0, 255);
            bytes[i * 3 + channel] = static_cast<std::uint8_t>(colour[channel]);
        }
    }
    return bytes;
}

std::vector<BytePoint> make_points_on_a_line(std::size_t points)
{
    Random random(12);
    std::vector<BytePoint> all(points);
    for (BytePoint& point : all) {
        const auto x = static_cast<std::int32_t>(random.below(256));
        const std::int32_t y = 30 + x * 7 / 10 + noise(random, 16);
        point = {static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(std::clamp(y, 0, 255))};
    }
    return all;
}

std::vector<std::int32_t> make_clouds(std::size_t points, unsigned dimensions, unsigned clusters)
{
    constexpr std::int32_t coordinate_max = 8191;
    Random random(13);
    std::vector<std::int32_t> middles(std::size_t{clusters} * dimensions);
    for (std::int32_t& middle : middles) {
        middle = static_cast<std::int32_t>(random.below(coordinate_max + 1));
    }
    std::vector<std::int32_t> all(points * dimensions);
    for (std::size_t i = 0; i < points; ++i) {
        const std::size_t cloud = random.below(clusters);
        for (unsigned d = 0; d < dimensions; ++d) {
            const std::int32_t coordinate = middles[cloud * dimensions + d] + noise(random, 900);
            all[i * dimensions + d] = std::clamp(coordinate, 0, coordinate_max);
        }
    }
    return all;
}

std::vector<double> make_matrix(std::size_t rows, std::uint64_t seed)
{
    Random random(seed);
    std::vector<double> all(rows * rows);
    for (double& element : all) {
        element = (static_cast<double>(random.below(511)) - 255) / 16;
    }
    return all;
}

}  // namespace bench
