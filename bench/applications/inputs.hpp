#pragma once
// What the applications read. It stands for files, so it lies in ordinary memory; the same seed makes the same bytes everywhere.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
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

/// The word of that number: lower-case letters, short for small numbers, different for different ones.
[[nodiscard]] std::string word_of_number(std::uint64_t number);

/// Several texts in one: text i is [begins[i], begins[i + 1]).
struct Texts {
    std::string bytes;
    std::vector<std::size_t> begins;

    [[nodiscard]] std::size_t count() const noexcept { return begins.size() - 1; }
    [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept
    {
        return std::string_view(bytes).substr(begins[i], begins[i + 1] - begins[i]);
    }
};

/// Different words in no order, a line each: line i ends with '\n'.
[[nodiscard]] Texts make_dictionary(std::size_t words);

/// Words as frequent as Zipf's law has them, of a vocabulary of 40,000, with punctuation and line ends between them.
[[nodiscard]] std::string make_text(std::size_t size_bytes);

/// Pages of some KiB with links (<a href="...">) to 20,000 places, a few of them popular by Zipf's law. At least one page.
[[nodiscard]] Texts make_pages(std::size_t size_bytes);

}  // namespace bench
