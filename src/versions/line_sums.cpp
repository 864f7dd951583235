#include "versions/line_sums.hpp"

#include <bit>

#include "arch/checksum.hpp"
#include "core/units.hpp"
#include "versions/delta_layout.hpp"

namespace stillpoint::versions {

Result<void> LineSums::reserve(std::uint64_t image_pages_max, std::uint64_t seed)
{
    seed_ = seed;
    if (auto done = states_.reserve(image_pages_max, "the sums of lines"); !done) {
        return done;
    }
    return sums_.reserve(image_pages_max * lines_per_page, "the sums of lines");
}

std::optional<std::uint64_t> LineSums::changed_lines(std::uint64_t image_page, const std::byte* copy) noexcept
{
    std::uint8_t& state = states_[image_page];
    if (state != unknown && state != known) {
        --state;
        return std::nullopt;
    }
    std::uint64_t* const sums = &sums_[image_page * lines_per_page];
    std::uint64_t mask = 0;
    for (std::uint64_t line = 0; line < lines_per_page; ++line) {
        const std::uint64_t sum = checksum64(copy + line * cache_line_bytes, cache_line_bytes, seed_);
        mask |= std::uint64_t{sum != sums[line]} << line;
        sums[line] = sum;
    }
    if (state == unknown) {
        state = known;
        return std::nullopt;
    }
    if (std::popcount(mask) > delta_lines_of_page_max) {
        state = epochs_left_alone;
        return std::nullopt;
    }
    return mask;
}

}  // namespace stillpoint::versions
