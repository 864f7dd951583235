// yada of STAMP (IISWC 2008, §III.B.8): refines a mesh of triangles until none of them has a small angle (Ruppert's algorithm).
//
// A heap has the bad triangles, the worst first. A thread takes one, in a transaction, and refines it in another one: it inserts the centre
// of the triangle's circle into the mesh; where that lies outside of the square, or in the circle around one of its sides, it divides that
// side instead. A third transaction puts the new bad triangles into the heap.
//
// A triangle in the heap, or in a thread's hands, is queued: when another thread takes it out of the mesh it stays there as a dead one.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../../harness/random.hpp"
#include "../../transactions/heap.hpp"
#include "../../workloads/makers.hpp"
#include "delaunay_mesh.hpp"
#include "programs.hpp"

namespace bench {
namespace {

using namespace transactional;
using plane::Site;

/// 20 degrees; Ruppert's algorithm is known to end below 20.7.
const double angle_min = std::pow(std::sin(20 * 3.14159265358979 / 180), 2);
/// Shorter sides are not divided: whole coordinates are too coarse for that. The input has none.
constexpr std::int64_t squared_side_min = 64 * 64;

bool is_bad(const Corners& corners)
{
    const auto& [a, b, c] = corners;
    return plane::squared_shortest_side(a, b, c) >= squared_side_min && plane::smallest_angle(a, b, c) < angle_min;
}
/// The worst ones first.
std::uint64_t key_of(const Corners& corners)
{
    const auto& [a, b, c] = corners;
    return static_cast<std::uint64_t>(std::ldexp(plane::smallest_angle(a, b, c), 62));
}

class Yada final : public TransactionalJob {
public:
    Yada(const Shape& shape, std::uint32_t sites)
        : TransactionalJob(shape), site_count_(sites), state_(M::named<State>("bench.yada")), mesh_(&state_->root), workers_(threads())
    {
    }

private:
    struct State {
        Triangle* root;
        Triangle* to_free;  ///< in clear(): those that wait for it
        alignas(64) Heap<Triangle*> heap;
    };
    struct Bad {
        std::uint64_t key;
        Triangle* triangle;
    };
    struct alignas(64) Worker {
        DelaunayMesh::Cavity cavity;
        std::vector<Triangle*> made;
        std::vector<Bad> bad;
    };

    /// Sites along the border, and one in each of some cells of the square.
    void make_input() override
    {
        constexpr std::int64_t size = DelaunayMesh::size;
        Random random(47);
        const auto each_side = static_cast<std::int64_t>(std::sqrt(site_count_));
        for (std::int64_t i = 1; i < each_side; ++i) {
            const std::int64_t along = size * i / each_side;
            sites_.insert(sites_.end(), {{along, 0}, {size, along}, {along, size}, {0, along}});
        }
        const std::int64_t cells_in_a_row = 2 * (each_side + 1);
        const std::int64_t width = size / cells_in_a_row;
        const auto inside = [&] { return width / 8 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width) * 3 / 4)); };
        std::vector<std::int64_t> cells(static_cast<std::size_t>(cells_in_a_row * cells_in_a_row));
        std::iota(cells.begin(), cells.end(), 0);
        for (std::size_t i = 0; i < site_count_; ++i) {
            std::swap(cells[i], cells[i + random.below(cells.size() - i)]);
            const std::int64_t x = cells[i] % cells_in_a_row * width + inside();
            sites_.push_back({x, cells[i] / cells_in_a_row * width + inside()});
        }
        order_for_insertion(random);
    }
    /// Rounds, each twice as long as the one before. In a round the square is passed through in strips, to and fro, so that the next site
    /// is never far; the sites of the rounds before lie everywhere, so that a cavity is never large.
    void order_for_insertion(Random& random)
    {
        shuffle(sites_, random);
        for (std::size_t first = 0, end = 32; first < sites_.size(); first = end, end *= 2) {
            const std::int64_t height = static_cast<std::int64_t>(DelaunayMesh::size / std::sqrt(end)) + 1;
            const auto place = [&](const Site& site) { return std::pair(site.y / height, site.y / height % 2 == 0 ? site.x : -site.x); };
            std::sort(sites_.begin() + static_cast<std::ptrdiff_t>(first),
                      sites_.begin() + static_cast<std::ptrdiff_t>(std::min(end, sites_.size())),
                      [&](const Site& one, const Site& other) { return place(one) < place(other); });
        }
    }
    void find_memory() override {}

    /// Makes the mesh of the input. What a killed thread had in its hands is lost memory.
    void clear() override
    {
        while (M::atomically([&](auto& tx) {
            const auto triangle = state_->heap.pop(tx);
            if (triangle && (tx.read((*triangle)->flags) & Triangle::is_dead) != 0) {
                tx.free(*triangle);
            }
            return triangle.has_value();
        })) {
        }
        M::atomically([&](auto& tx) {
            if (Triangle* const root = tx.read(state_->root); root != nullptr) {
                put_to_free(tx, root);
                tx.write(state_->root, static_cast<Triangle*>(nullptr));
            }
        });
        while (M::atomically([&](auto& tx) { return free_one(tx); })) {
        }
        M::atomically([&](auto& tx) { mesh_.make_square(tx); });
        Worker& worker = workers_.front();
        for (const Site& site : sites_) {
            M::atomically([&](auto& tx) {
                const auto place = DelaunayMesh::walk(tx, tx.read(state_->root), site);
                DelaunayMesh::find_cavity(tx, place.side.triangle, site, worker.cavity);
                mesh_.fill(tx, worker.cavity, site, nullptr, [](const Corners&) { return std::uint64_t{0}; }, worker.made);
            });
        }
        for (Triangle* const triangle : all_triangles()) {
            if (const Corners corners = DelaunayMesh::corners_of(*triangle); is_bad(corners)) {
                M::atomically([&](auto& tx) {
                    tx.write(triangle->flags, Triangle::is_queued);
                    state_->heap.push(tx, key_of(corners), triangle);
                });
            }
        }
    }
    template <Transaction Tx>
    void put_to_free(Tx& tx, Triangle* triangle) const
    {
        tx.write(triangle->flags, Triangle::is_dead);
        tx.write(triangle->next_to_free, tx.read(state_->to_free));
        tx.write(state_->to_free, triangle);
    }
    /// Frees the first one that waits; from now on its neighbours wait, and forget it. False: there was none.
    template <Transaction Tx>
    bool free_one(Tx& tx) const
    {
        Triangle* const one = tx.read(state_->to_free);
        if (one == nullptr) {
            return false;
        }
        tx.write(state_->to_free, tx.read(one->next_to_free));
        for (Triangle*& link : one->neighbours) {
            Triangle* const neighbour = tx.read(link);
            if (neighbour == nullptr) {
                continue;
            }
            for (Triangle*& back : neighbour->neighbours) {
                if (tx.read(back) == one) {
                    tx.write(back, static_cast<Triangle*>(nullptr));
                }
            }
            if ((tx.read(neighbour->flags) & Triangle::is_dead) == 0) {
                put_to_free(tx, neighbour);
            }
        }
        tx.free(one);
        return true;
    }

    void run(Context& context) override
    {
        Worker& worker = workers_[context.thread];
        while (const auto taken = atomically(context, [&](auto& tx) { return state_->heap.pop(tx); })) {
            atomically(context, [&](auto& tx) { refine(tx, worker, *taken); });
            context.changed_bytes += worker.made.size() * sizeof(Triangle);
            if (!worker.bad.empty()) {
                atomically(context, [&](auto& tx) {
                    for (const Bad& one : worker.bad) {
                        state_->heap.push(tx, one.key, one.triangle);
                    }
                });
            }
        }
    }
    template <Transaction Tx>
    void refine(Tx& tx, Worker& worker, Triangle* triangle) const
    {
        worker.made.clear();
        worker.bad.clear();
        if ((tx.read(triangle->flags) & Triangle::is_dead) != 0) {
            tx.free(triangle);
            return;
        }
        const Corners corners = DelaunayMesh::corners_of(tx, *triangle);
        Site site = circumcentre(corners[0], corners[1], corners[2], 2 * DelaunayMesh::size);
        const auto place = DelaunayMesh::walk(tx, triangle, site);
        Triangle* start = place.side.triangle;
        if (place.is_outside) {
            site = DelaunayMesh::middle(tx, place.side);
        }
        DelaunayMesh::find_cavity(tx, start, site, worker.cavity);
        if (const auto side = DelaunayMesh::encroached(worker.cavity, site); side && !place.is_outside) {
            site = DelaunayMesh::middle(tx, *side);
            start = side->triangle;
            DelaunayMesh::find_cavity(tx, start, site, worker.cavity);
        }
        const Corners around = DelaunayMesh::corners_of(tx, *start);
        if (std::find(around.begin(), around.end(), site) != around.end()) {
            tx.write(triangle->flags, std::uint64_t{0});  // too small for whole coordinates
            return;
        }
        const auto flags_of = [](const Corners& made) { return is_bad(made) ? Triangle::is_queued : 0; };
        mesh_.fill(tx, worker.cavity, site, triangle, flags_of, worker.made);
        for (Triangle* const made : worker.made) {
            if (const Corners now = DelaunayMesh::corners_of(tx, *made); is_bad(now)) {
                worker.bad.push_back({key_of(now), made});
            }
        }
        if (std::find(worker.cavity.triangles.begin(), worker.cavity.triangles.end(), triangle) == worker.cavity.triangles.end()) {
            worker.bad.push_back({key_of(corners), triangle});  // a side far from it was divided
        }
    }

    std::string fault_of_result() const override
    {
        for (const Triangle* triangle : all_triangles()) {
            if (is_bad(DelaunayMesh::corners_of(*triangle))) {
                return "a triangle with a small angle is left";
            }
        }
        bool is_empty = true;
        state_->heap.for_each([&](std::uint64_t, const Triangle*) { is_empty = false; });
        return is_empty ? fault_of_unfinished() : "the heap is not empty";
    }
    /// The triangles cover the square, know each other, and are Delaunay's; bad ones are queued, and so is what lies in the heap.
    std::string fault_of_unfinished() const override
    {
        std::int64_t area = 0;
        const auto triangles = all_triangles();
        for (const Triangle* triangle : triangles) {
            const auto [a, b, c] = DelaunayMesh::corners_of(*triangle);
            area += doubled_area(a, b, c);
            if (doubled_area(a, b, c) <= 0 || (triangle->flags & Triangle::is_dead) != 0) {
                return "a triangle of the mesh is dead, or turned over";
            }
            if (is_bad({a, b, c}) && triangle->flags != Triangle::is_queued) {
                return "a triangle with a small angle is not queued";
            }
            for (unsigned side = 0; side < 3; ++side) {
                if (std::string fault = fault_of_side(*triangle, side); !fault.empty()) {
                    return fault;
                }
            }
        }
        if (area != 2 * DelaunayMesh::size * DelaunayMesh::size) {
            return "the triangles do not cover the square";
        }
        bool are_queued = state_->heap.is_whole();
        state_->heap.for_each(
            [&](std::uint64_t, const Triangle* one) { are_queued = are_queued && (one->flags & Triangle::is_queued) != 0; });
        return are_queued ? std::string() : "the heap is out of order, or has a triangle that is not queued";
    }
    [[nodiscard]] static std::string fault_of_side(const Triangle& triangle, unsigned side)
    {
        constexpr std::int64_t size = DelaunayMesh::size;
        const Corners corners = DelaunayMesh::corners_of(triangle);
        const Site& begin = corners[(side + 1) % 3];
        const Site& end = corners[(side + 2) % 3];
        const Triangle* const other = triangle.neighbours[side];
        if (other == nullptr) {
            const bool is_border = (begin.x == end.x && (begin.x == 0 || begin.x == size)) ||
                                   (begin.y == end.y && (begin.y == 0 || begin.y == size));
            return is_border ? std::string() : "a triangle inside the square has no neighbour";
        }
        const auto back = static_cast<unsigned>(std::find(other->neighbours, other->neighbours + 3, &triangle) - other->neighbours);
        const Corners of_other = DelaunayMesh::corners_of(*other);
        if (back == 3 || of_other[(back + 1) % 3] != end || of_other[(back + 2) % 3] != begin) {
            return "two neighbours do not have a side together";
        }
        return is_in_circle(corners[0], corners[1], corners[2], of_other[back]) ? "two neighbours are not Delaunay's" : std::string();
    }
    [[nodiscard]] std::vector<Triangle*> all_triangles() const
    {
        std::vector<Triangle*> found;
        std::unordered_set<const Triangle*> seen{nullptr};
        const auto reach = [&](Triangle* one) {
            if (seen.insert(one).second) {
                found.push_back(one);
            }
        };
        reach(state_->root);
        for (std::size_t i = 0; i < found.size(); ++i) {
            std::for_each(found[i]->neighbours, found[i]->neighbours + 3, reach);
        }
        return found;
    }

    const std::uint32_t site_count_;
    std::vector<Site> sites_;
    State* state_;
    DelaunayMesh mesh_;
    std::vector<Worker> workers_;
};

}  // namespace

Work make_stamp_yada(const Shape& shape)
{
    return {nullptr, std::make_unique<Yada>(shape, parameters_for<std::uint32_t>(shape, 150, 2000, 1'000'000))};
}

}  // namespace bench
