#pragma once
// Latencies in the buckets of an HDR histogram (Gil Tene): within a power of two, 1024 buckets of equal width, so that a
// value is known within a thousandth. docs/internals/decisions/latency-histogram.md says why no library is used.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// One thread's; histograms of several threads are added up. No allocation after construction.
class LatencyHistogram {
public:
    LatencyHistogram() : counts_(bucket_count) {}

    void record(std::uint64_t value_ns) noexcept { ++counts_[index_of(value_ns)]; }
    void add(const LatencyHistogram& other) noexcept
    {
        for (std::size_t i = 0; i < bucket_count; ++i) {
            counts_[i] += other.counts_[i];
        }
    }
    /// Calls visit(largest value of the bucket in ns, count) for each bucket that is not empty, smallest first.
    template <class Visit>
    void for_each(Visit visit) const
    {
        for (std::size_t i = 0; i < bucket_count; ++i) {
            if (counts_[i] != 0) {
                visit(largest_of(i), counts_[i]);
            }
        }
    }

    /// The bucket of a value, and the largest value of a bucket; values of 2^40 ns (18 minutes) and more share the last one.
    static constexpr std::size_t index_of(std::uint64_t value_ns) noexcept
    {
        const std::uint64_t value = value_ns < value_limit ? value_ns : value_limit - 1;
        const unsigned width = static_cast<unsigned>(std::bit_width(value));
        if (width <= precision_bits) {
            return value;
        }
        const unsigned shift = width - precision_bits;
        return (static_cast<std::size_t>(shift) << (precision_bits - 1)) + (value >> shift);
    }
    static constexpr std::uint64_t largest_of(std::size_t index) noexcept
    {
        constexpr std::size_t half = std::size_t{1} << (precision_bits - 1);
        if (index < 2 * half) {
            return index;
        }
        const unsigned shift = static_cast<unsigned>(index / half - 1);
        return ((index - (static_cast<std::size_t>(shift) * half) + 1) << shift) - 1;
    }

private:
    static constexpr unsigned precision_bits = 11;
    static constexpr std::uint64_t value_limit = std::uint64_t{1} << 40;
    static constexpr std::size_t bucket_count = ((40 - precision_bits + 2) << (precision_bits - 1));

    std::vector<std::uint64_t> counts_;
};

/// [[ns, count], ...], smallest first.
inline std::string json_of(const LatencyHistogram& histogram)
{
    std::string json = "[";
    histogram.for_each([&](std::uint64_t value_ns, std::uint64_t count) {
        json += (json.size() > 1 ? ", [" : "[") + std::to_string(value_ns) + ", " + std::to_string(count) + "]";
    });
    return json + "]";
}

static_assert(LatencyHistogram::index_of(2047) == 2047 && LatencyHistogram::index_of(2048) == 2048);
static_assert(LatencyHistogram::largest_of(LatencyHistogram::index_of(2048)) == 2049);
static_assert(LatencyHistogram::largest_of(LatencyHistogram::index_of(1'000'000)) - 1'000'000 < 1000);

}  // namespace bench
