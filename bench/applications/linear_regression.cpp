// Linear regression: the line that fits a cloud of points best.
//
// The points in memory are taken several times, as files that happen to be alike, so that a job is long and its input is small.
// Durable: each thread's own sums, which grow by 8192 points an operation if no other number is asked for, their total, and the line.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "inputs.hpp"
#include "kept_array.hpp"

namespace bench {
namespace {

constexpr std::uint64_t usual_points_each = 8192;  // in one operation: 16 KiB
constexpr std::uint64_t files = 8;

struct Sums {
    std::uint64_t points;
    std::uint64_t x;
    std::uint64_t y;
    std::uint64_t xx;
    std::uint64_t yy;
    std::uint64_t xy;

    void add(const Sums& other) noexcept
    {
        points += other.points;
        x += other.x;
        y += other.y;
        xx += other.xx;
        yy += other.yy;
        xy += other.xy;
    }
    bool operator==(const Sums&) const = default;
};

struct Line {
    double slope;
    double intercept;
};

Line fit(const Sums& sums) noexcept
{
    const auto n = static_cast<double>(sums.points);
    const auto x = static_cast<double>(sums.x);
    const auto y = static_cast<double>(sums.y);
    const double spread = n * static_cast<double>(sums.xx) - x * x;
    const double slope = spread == 0 ? 0 : (n * static_cast<double>(sums.xy) - x * y) / spread;
    return {slope, (y - slope * x) / n};
}

class LinearRegression final : public EngineJob {
public:
    LinearRegression(const Shape& shape, std::uint64_t input_bytes)
        : EngineJob(shape), points_each_(shape.operation_size != 0 ? shape.operation_size : usual_points_each),
          points_(std::max<std::uint64_t>(input_bytes / sizeof(BytePoint), 1))
    {
    }

    void load() override
    {
        input_ = make_points_on_a_line(points_);
        for (const BytePoint& p : input_) {
            const std::uint64_t x = p.x;
            const std::uint64_t y = p.y;
            expected_.add({files, files * x, files * y, files * x * x, files * y * y, files * x * y});
        }
        // By the deviations from the means: another formula than the threads'.
        const double mean_x = static_cast<double>(expected_.x) / static_cast<double>(expected_.points);
        const double mean_y = static_cast<double>(expected_.y) / static_cast<double>(expected_.points);
        double together = 0;
        double alone = 0;
        for (const BytePoint& p : input_) {
            together += (p.x - mean_x) * (p.y - mean_y);
            alone += (p.x - mean_x) * (p.x - mean_x);
        }
        expected_line_.slope = alone == 0 ? 0 : together / alone;
        expected_line_.intercept = mean_y - expected_line_.slope * mean_x;
        own_ = kept_array<E, Own>("bench.linear_regression.threads", shape_.threads);
        result_ = kept_array<E, Result>("bench.linear_regression.result", 1);
    }
    void prepare() override
    {
        for (unsigned thread = 0; thread < shape_.threads; ++thread) {
            E::Operation<1> operation;
            operation.lock(own_[thread].mutex);
            own_[thread].sums.set({});
        }
        E::Operation<1> operation;
        operation.lock(result_->mutex);
        result_->found.set({});
    }
    void work(Context& context) override
    {
        Own& own = own_[context.thread];
        const Part part = part_of(context.thread, points_);
        for (std::uint64_t file = 0; file < files; ++file) {
            for (std::uint64_t first = part.first; first < part.last; first += points_each_) {
                const Sums sums = sum(first, std::min(first + points_each_, part.last));
                E::Operation<1> operation;
                operation.lock(own.mutex);
                add(own.sums, sums);
                context.changed_bytes += sizeof sums;
            }
        }
        E::Operation<1> operation;
        operation.lock(result_->mutex);
        Found found = result_->found.get();
        found.sums.add(own.sums.get());
        if (found.sums.points == items()) {  // the last of the threads
            found.line = fit(found.sums);
        }
        result_->found.set(found);
        context.changed_bytes += sizeof found;
    }
    std::string fault() override
    {
        const Found found = result_->found.get();
        const Line& line = found.line;
        if (found.sums != expected_) {
            return "the sums are not those of the points";
        }
        const bool fits = std::abs(line.slope - expected_line_.slope) < 1e-6 && std::abs(line.intercept - expected_line_.intercept) < 1e-4;
        return fits ? std::string() : "the line does not fit the points";
    }
    [[nodiscard]] std::uint64_t items() const override { return files * points_; }

private:
    struct alignas(64) Own {
        E::Mutex mutex;
        alignas(64) E::Record<Sums> sums;
    };
    struct Found {
        Sums sums;
        Line line;
    };
    struct Result {
        E::Mutex mutex;
        E::Record<Found> found;
    };

    static void add(E::Record<Sums>& record, const Sums& more)
    {
        Sums sums = record.get();
        sums.add(more);
        record.set(sums);
    }

    [[nodiscard]] Sums sum(std::uint64_t first, std::uint64_t last) const noexcept
    {
        std::uint64_t sum_x = 0;
        std::uint64_t sum_y = 0;
        std::uint64_t sum_xx = 0;
        std::uint64_t sum_yy = 0;
        std::uint64_t sum_xy = 0;
        const auto add = [&](BytePoint point) {
            const std::uint64_t x = point.x;
            const std::uint64_t y = point.y;
            sum_x += x;
            sum_y += y;
            sum_xx += x * x;
            sum_yy += y * y;
            sum_xy += x * y;
        };
        // Four at a time: the time of a loop of a dozen instructions would depend on where the linker has put it, by 40 %.
        const BytePoint* point = input_.data() + first;
        const BytePoint* const end = input_.data() + last;
        for (; end - point >= 4; point += 4) {
            add(point[0]);
            add(point[1]);
            add(point[2]);
            add(point[3]);
        }
        for (; point != end; ++point) {
            add(*point);
        }
        return {last - first, sum_x, sum_y, sum_xx, sum_yy, sum_xy};
    }

    const std::uint64_t points_each_;
    const std::uint64_t points_;
    std::vector<BytePoint> input_;
    Sums expected_{};
    Line expected_line_{};
    Own* own_ = nullptr;
    Result* result_ = nullptr;
};

}  // namespace

/// size: bytes of the points in memory, two each.
Work make_linear_regression(const Shape& shape)
{
    return {nullptr, std::make_unique<LinearRegression>(shape, shape.size_or(32'000'000, 300'000))};
}

}  // namespace bench
