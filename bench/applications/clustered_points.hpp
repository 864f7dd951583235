#pragma once
// Points around some centres, with noise: they stand for a file that is read. Coordinates are whole numbers, so that sums of
// coordinates and of squared distances are exact, whatever the order in which threads add them up.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bench {

class ClusteredPoints {
public:
    /// Each coordinate is from 0 to 1023.
    ClusteredPoints(std::uint64_t count, std::size_t dimensions, unsigned clusters);

    [[nodiscard]] std::uint64_t count() const noexcept { return coordinates_.size() / dimensions_; }
    [[nodiscard]] std::size_t dimensions() const noexcept { return dimensions_; }
    [[nodiscard]] const std::int32_t* operator[](std::uint64_t number) const noexcept
    {
        return coordinates_.data() + number * dimensions_;
    }

private:
    std::size_t dimensions_;
    std::vector<std::int32_t> coordinates_;
};

}  // namespace bench
