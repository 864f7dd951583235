#pragma once
// A Delaunay triangulation of a square in transactional memory: no corner lies inside the circle through the corners of another triangle.
// New corners are inserted as Bowyer and Watson do it: the triangles whose circles have the new corner inside make a cavity, which is
// filled with triangles between its border and the new corner.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "../../transactions/transactions.hpp"
#include "plane_geometry.hpp"

namespace bench {

/// Corners are counter-clockwise; the neighbour of a number is the one beyond the side opposite the corner of that number, and nullptr
/// where that side is one of the square's border.
struct Triangle {
    std::uint64_t corners[3];
    Triangle* neighbours[3];
    std::uint64_t flags;
    Triangle* next_to_free;

    /// The heap or a thread has a pointer to it, to refine it. One that is dead too is no longer in the mesh; the thread that takes it from
    /// the heap frees it.
    static constexpr std::uint64_t is_queued = 1;
    static constexpr std::uint64_t is_dead = 2;
};

using Corners = std::array<plane::Site, 3>;

/// A side of a triangle.
struct Side {
    Triangle* triangle;
    unsigned number;
};

class DelaunayMesh {
public:
    static constexpr std::int64_t size = 1 << 22;  ///< of the square

    /// `root`: some triangle of the mesh, or nullptr, in transactional memory.
    explicit DelaunayMesh(Triangle** root) noexcept : root_(root) {}

    /// Two triangles.
    template <Transaction Tx>
    void make_square(Tx& tx) const
    {
        const std::uint64_t square[] = {plane::packed({0, 0}), plane::packed({size, 0}), plane::packed({size, size}),
                                        plane::packed({0, size})};
        auto* const lower = make_triangle(tx, square[0], square[1], square[2], 0);
        auto* const upper = make_triangle(tx, square[0], square[2], square[3], 0);
        tx.write(lower->neighbours[1], upper);
        tx.write(upper->neighbours[2], lower);
        tx.write(*root_, lower);
    }

    /// Where a walk from a triangle towards a site ends: in a triangle that has it, on a side of which the site is on the left; or at the
    /// side where it leaves the square.
    struct Place {
        Side side;
        bool is_outside;
    };
    template <Transaction Tx>
    [[nodiscard]] static Place walk(Tx& tx, Triangle* from, const plane::Site& site)
    {
        for (;;) {
            const Corners corners = corners_of(tx, *from);
            unsigned side = 0;
            while (side < 3 && doubled_area(corners[(side + 1) % 3], corners[(side + 2) % 3], site) >= 0) {
                ++side;
            }
            if (side == 3) {
                return {{from, 0}, false};
            }
            Triangle* const next = tx.read(from->neighbours[side]);
            if (next == nullptr) {
                return {{from, side}, true};
            }
            from = next;
        }
    }

    /// The triangles around a new corner, and what lies around them.
    struct Cavity {
        std::vector<Triangle*> triangles;
        struct Border {
            std::uint64_t begin;  ///< counter-clockwise, seen from inside
            std::uint64_t end;
            Triangle* outside;
            Side inside;
        };
        std::vector<Border> border;
    };
    /// `start` has the site inside its circle.
    template <Transaction Tx>
    static void find_cavity(Tx& tx, Triangle* start, const plane::Site& site, Cavity& found)
    {
        found.triangles.assign(1, start);
        found.border.clear();
        const auto has = [&](const Triangle* one) {
            return std::find(found.triangles.begin(), found.triangles.end(), one) != found.triangles.end();
        };
        for (std::size_t i = 0; i < found.triangles.size(); ++i) {
            for (Triangle*& link : found.triangles[i]->neighbours) {
                Triangle* const next = tx.read(link);
                if (next != nullptr && !has(next)) {
                    const Corners corners = corners_of(tx, *next);
                    if (is_in_circle(corners[0], corners[1], corners[2], site)) {
                        found.triangles.push_back(next);
                    }
                }
            }
        }
        for (Triangle* const one : found.triangles) {
            for (unsigned side = 0; side < 3; ++side) {
                Triangle* const outside = tx.read(one->neighbours[side]);
                if (outside == nullptr || !has(outside)) {
                    found.border.push_back(
                        {tx.read(one->corners[(side + 1) % 3]), tx.read(one->corners[(side + 2) % 3]), outside, {one, side}});
                }
            }
        }
    }
    /// The first side of the square in the border that the site encroaches on.
    [[nodiscard]] static std::optional<Side> encroached(const Cavity& cavity, const plane::Site& site)
    {
        const auto found = std::find_if(cavity.border.begin(), cavity.border.end(), [&](const Cavity::Border& one) {
            return one.outside == nullptr && encroaches(site, plane::unpacked(one.begin), plane::unpacked(one.end));
        });
        return found != cavity.border.end() ? std::optional(found->inside) : std::nullopt;
    }
    /// The site in the middle of a side of the square.
    template <Transaction Tx>
    [[nodiscard]] static plane::Site middle(Tx& tx, const Side& side)
    {
        const Corners corners = corners_of(tx, *side.triangle);
        const plane::Site& a = corners[(side.number + 1) % 3];
        const plane::Site& b = corners[(side.number + 2) % 3];
        return {(a.x + b.x) / 2, (a.y + b.y) / 2};
    }

    /// Replaces the triangles of the cavity by new ones, `made`; `flags_of(corners)` are their flags. One of the cavity that is queued
    /// stays as a dead one, but for `held`, which is the caller's.
    template <Transaction Tx, class FlagsOf>
    void fill(Tx& tx, const Cavity& cavity, const plane::Site& site, const Triangle* held, FlagsOf flags_of,
              std::vector<Triangle*>& made) const
    {
        made.clear();
        for (const Cavity::Border& side : cavity.border) {
            const plane::Site begin = plane::unpacked(side.begin);
            const plane::Site end = plane::unpacked(side.end);
            if (doubled_area(begin, end, site) == 0) {
                continue;  // the side of the square that the site divides
            }
            Triangle* const triangle = make_triangle(tx, side.begin, side.end, packed(site), flags_of(Corners{begin, end, site}));
            made.push_back(triangle);
            if (side.outside != nullptr) {
                tx.write(triangle->neighbours[2], side.outside);
                tx.write(*link_to(tx, *side.outside, side.inside.triangle), triangle);
            }
        }
        // Around the new corner each triangle begins where another one ends; not at the border of the square.
        for (Triangle* const one : made) {
            const std::uint64_t end = tx.read(one->corners[1]);
            for (Triangle* const other : made) {
                if (tx.read(other->corners[0]) == end) {
                    tx.write(one->neighbours[0], other);
                    tx.write(other->neighbours[1], one);
                }
            }
        }
        const Triangle* const root = tx.read(*root_);
        for (Triangle* const one : cavity.triangles) {
            if (one == root) {
                tx.write(*root_, made.front());
            }
            const std::uint64_t flags = tx.read(one->flags);
            if (one != held && (flags & Triangle::is_queued) != 0) {
                tx.write(one->flags, flags | Triangle::is_dead);
            } else {
                tx.free(one);
            }
        }
    }

    template <Transaction Tx>
    [[nodiscard]] static Corners corners_of(Tx& tx, const Triangle& triangle)
    {
        return {plane::unpacked(tx.read(triangle.corners[0])), plane::unpacked(tx.read(triangle.corners[1])),
                plane::unpacked(tx.read(triangle.corners[2]))};
    }
    /// No thread is in a transaction.
    [[nodiscard]] static Corners corners_of(const Triangle& triangle)
    {
        return {plane::unpacked(triangle.corners[0]), plane::unpacked(triangle.corners[1]), plane::unpacked(triangle.corners[2])};
    }

private:
    template <Transaction Tx>
    static Triangle* make_triangle(Tx& tx, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t flags)
    {
        auto* const made = make_empty<Triangle>(tx);
        tx.write(made->corners[0], a);
        tx.write(made->corners[1], b);
        tx.write(made->corners[2], c);
        tx.write(made->flags, flags);
        return made;
    }
    /// The place where one triangle has its other one as a neighbour.
    template <Transaction Tx>
    static Triangle** link_to(Tx& tx, Triangle& of, const Triangle* neighbour)
    {
        unsigned side = 0;
        while (side < 2 && tx.read(of.neighbours[side]) != neighbour) {
            ++side;
        }
        return &of.neighbours[side];
    }

    Triangle** root_;
};

}  // namespace bench
