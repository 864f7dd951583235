// Histogram: how often each value of red, green and blue is in a series of images.
//
// One image in memory stands for all of the series, so that a job is long and its input is small.
// Durable: each thread's own bins, which grow by 16 KiB of pixels an operation, and their sum.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "inputs.hpp"
#include "kept_array.hpp"

namespace bench {
namespace {

constexpr std::size_t pixel_bytes = 3;
constexpr std::size_t bins = pixel_bytes * 256;
constexpr std::uint64_t pixels_each = 16384 / pixel_bytes;  // in one operation
constexpr std::uint64_t images = 8;

class Histogram final : public EngineJob {
public:
    Histogram(const Shape& shape, std::uint64_t image_bytes)
        : EngineJob(shape), pixels_(std::max<std::uint64_t>(image_bytes / pixel_bytes, 1))
    {
    }

    void load() override
    {
        image_ = make_pixels(pixels_);
        expected_.resize(bins);
        for (std::size_t i = 0; i < image_.size(); ++i) {
            expected_[i % pixel_bytes * 256 + image_[i]] += images;
        }
        own_ = kept_array<E, Counts>("bench.histogram.threads", shape_.threads);
        sum_ = kept_array<E, Counts>("bench.histogram.sum", 1);
    }
    void prepare() override
    {
        for (unsigned thread = 0; thread < shape_.threads; ++thread) {
            refill<E>(own_[thread].mutex, own_[thread].bins, sizeof own_[thread].bins);
        }
        refill<E>(sum_->mutex, sum_->bins, sizeof sum_->bins);
    }
    void work(Context& context) override
    {
        Counts& own = own_[context.thread];
        const Part part = part_of(context.thread, pixels_);
        for (std::uint64_t image = 0; image < images; ++image) {
            for (std::uint64_t first = part.first; first < part.last; first += pixels_each) {
                E::Operation<1> operation;
                operation.lock(own.mutex);
                E::about_to_write(own.bins, sizeof own.bins);
                count(first, std::min(first + pixels_each, part.last), own.bins);
                context.changed_bytes += sizeof own.bins;
            }
        }
        E::Operation<1> operation;
        operation.lock(sum_->mutex);
        E::about_to_write(sum_->bins, sizeof sum_->bins);
        for (std::size_t i = 0; i < bins; ++i) {
            sum_->bins[i] += own.bins[i];
        }
        context.changed_bytes += sizeof sum_->bins;
    }
    std::string fault() override
    {
        return std::equal(expected_.begin(), expected_.end(), sum_->bins) ? std::string() : "the histogram is not that of the images";
    }
    [[nodiscard]] std::uint64_t items() const override { return images * image_.size(); }

private:
    /// Whole cache lines: the threads' bins lie next to each other.
    struct alignas(64) Counts {
        E::Mutex mutex;
        std::uint64_t bins[bench::bins];
    };

    void count(std::uint64_t first, std::uint64_t last, std::uint64_t* counts) const noexcept
    {
        const std::uint8_t* const end = image_.data() + last * pixel_bytes;
        for (const std::uint8_t* pixel = image_.data() + first * pixel_bytes; pixel != end; pixel += pixel_bytes) {
            counts[pixel[0]] += 1;
            counts[256 + pixel[1]] += 1;
            counts[512 + pixel[2]] += 1;
        }
    }

    const std::uint64_t pixels_;
    std::vector<std::uint8_t> image_;
    std::vector<std::uint64_t> expected_;
    Counts* own_ = nullptr;
    Counts* sum_ = nullptr;
};

}  // namespace

/// size: bytes of each image.
Work make_histogram(const Shape& shape) { return {nullptr, std::make_unique<Histogram>(shape, shape.size_or(48'000'000, 300'000))}; }

}  // namespace bench
