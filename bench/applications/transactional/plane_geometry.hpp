#pragma once
// Exact geometry for triangles whose corners have whole coordinates: no rounding can make two predicates contradict each other.
//
// Coordinates are below 2^24 in magnitude. So a doubled area fits into 64 bits, and the determinant of in_circle() into 128.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace bench::plane {

// GCC and Clang have it on every CPU with 64 bits; -Wpedantic knows no such type.
__extension__ using Wide = __int128;

struct Site {
    std::int64_t x;
    std::int64_t y;
    bool operator==(const Site&) const = default;
};

/// A site with coordinates that are not negative, as one word.
[[nodiscard]] inline std::uint64_t packed(const Site& site) noexcept
{
    return static_cast<std::uint64_t>(site.x) << 32 | static_cast<std::uint64_t>(site.y);
}
[[nodiscard]] inline Site unpacked(std::uint64_t word) noexcept
{
    return {static_cast<std::int64_t>(word >> 32), static_cast<std::int64_t>(word & UINT32_MAX)};
}

/// Twice the area of the triangle; positive: its corners are counter-clockwise, 0: they lie on a line.
[[nodiscard]] inline std::int64_t doubled_area(const Site& a, const Site& b, const Site& c) noexcept
{
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

[[nodiscard]] inline std::int64_t squared_distance(const Site& a, const Site& b) noexcept
{
    return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y);
}

/// The site lies inside the circle through the corners, which are counter-clockwise; not on it.
[[nodiscard]] inline bool is_in_circle(const Site& a, const Site& b, const Site& c, const Site& site) noexcept
{
    const auto lifted = [&](const Site& p, const Site& q, const Site& r) {
        return Wide{doubled_area(site, p, q)} * squared_distance(site, r);
    };
    return lifted(a, b, c) + lifted(b, c, a) + lifted(c, a, b) > 0;
}

/// The site lies in the circle of which the edge is a diameter, or on it.
[[nodiscard]] inline bool encroaches(const Site& site, const Site& a, const Site& b) noexcept
{
    return (a.x - site.x) * (b.x - site.x) + (a.y - site.y) * (b.y - site.y) <= 0;
}

/// The squared sine of the smallest angle, at most 3/4.
[[nodiscard]] inline double smallest_angle(const Site& a, const Site& b, const Site& c) noexcept
{
    std::int64_t sides[] = {squared_distance(a, b), squared_distance(b, c), squared_distance(c, a)};
    std::sort(sides, sides + 3);
    const auto area = static_cast<double>(doubled_area(a, b, c));
    return area / static_cast<double>(sides[1]) * (area / static_cast<double>(sides[2]));
}

[[nodiscard]] inline std::int64_t squared_shortest_side(const Site& a, const Site& b, const Site& c) noexcept
{
    return std::min({squared_distance(a, b), squared_distance(b, c), squared_distance(c, a)});
}

/// The centre of the circle through the corners, rounded; one that is further than `far` from the first corner is moved to that distance.
[[nodiscard]] inline Site circumcentre(const Site& a, const Site& b, const Site& c, std::int64_t far) noexcept
{
    const Wide b_squared = squared_distance(a, b);
    const Wide c_squared = squared_distance(a, c);
    const Wide twice = Wide{2} * doubled_area(a, b, c);
    const Wide x = (c.y - a.y) * b_squared - (b.y - a.y) * c_squared;
    const Wide y = (b.x - a.x) * c_squared - (c.x - a.x) * b_squared;
    const double distance = std::hypot(static_cast<double>(x), static_cast<double>(y)) / static_cast<double>(twice);
    if (distance > static_cast<double>(far)) {
        const double scale = static_cast<double>(far) / distance / static_cast<double>(twice);
        return {a.x + static_cast<std::int64_t>(static_cast<double>(x) * scale),
                a.y + static_cast<std::int64_t>(static_cast<double>(y) * scale)};
    }
    return {a.x + static_cast<std::int64_t>(x / twice), a.y + static_cast<std::int64_t>(y / twice)};
}

}  // namespace bench::plane
