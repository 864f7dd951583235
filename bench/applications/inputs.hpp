#pragma once
// Numbers that applications read; texts are in texts.hpp. They stand for files, so they lie in ordinary memory; the same numbers are
// made everywhere.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/// Three bytes for each pixel; neighbours are alike, as in a photograph.
[[nodiscard]] std::vector<std::uint8_t> make_pixels(std::size_t pixels);

struct BytePoint {
    std::uint8_t x;
    std::uint8_t y;
};
/// Around the line y = 30 + 0.7 x, as far as a byte reaches.
[[nodiscard]] std::vector<BytePoint> make_points_on_a_line(std::size_t points);

/// `points` times `dimensions` coordinates from 0 to 8191, in `clusters` clouds that overlap.
[[nodiscard]] std::vector<std::int32_t> make_clouds(std::size_t points, unsigned dimensions, unsigned clusters);

/// Row after row. Multiples of 1/16 below 16 in magnitude, so that sums of a few thousand products are exact in any order.
[[nodiscard]] std::vector<double> make_matrix(std::size_t rows, std::uint64_t seed);

}  // namespace bench
