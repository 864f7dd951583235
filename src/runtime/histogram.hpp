#pragma once
// A histogram of fixed size on a logarithmic scale: eight buckets for each power of two, so a
// quantile is at most 12.5 % above the recorded value. No memory but its own, no lock.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace stillpoint {

/// Threads: one writer; readers of another thread need their own synchronisation.
class LogHistogram {
public:
    void record(std::uint64_t value) noexcept
    {
        ++counts_[bucket_of(value)];
        ++total_;
        max_ = std::max(max_, value);
    }
    [[nodiscard]] std::uint64_t total() const noexcept { return total_; }

    /// Upper bound of the bucket that holds the `per_mille`-th part of all values, and never more than the largest of them; 0 when empty.
    [[nodiscard]] std::uint64_t quantile(std::uint64_t per_mille) const noexcept
    {
        const std::uint64_t rank = (total_ * per_mille + 999) / 1000;
        std::uint64_t seen = 0;
        for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
            seen += counts_[bucket];
            if (seen >= rank && seen != 0) {
                return std::min(last_value_of(bucket), max_);
            }
        }
        return 0;
    }

private:
    static constexpr unsigned sub_bits = 3;
    static constexpr std::uint64_t sub_count = 1u << sub_bits;

    static std::size_t bucket_of(std::uint64_t value) noexcept
    {
        if (value < sub_count) {
            return static_cast<std::size_t>(value);
        }
        const unsigned exponent = static_cast<unsigned>(std::bit_width(value)) - 1;
        const std::uint64_t mantissa = (value >> (exponent - sub_bits)) & (sub_count - 1);
        return static_cast<std::size_t>((exponent - sub_bits + 1) * sub_count + mantissa);
    }
    static std::uint64_t last_value_of(std::size_t bucket) noexcept
    {
        if (bucket < sub_count) {
            return bucket;
        }
        const std::uint64_t shift = bucket / sub_count - 1;
        const std::uint64_t mantissa = bucket % sub_count + sub_count;
        return ((mantissa + 1) << shift) - 1;  // The very last bucket wraps to UINT64_MAX: right.
    }

    std::array<std::uint64_t, (64 - sub_bits + 1) * sub_count> counts_{};
    std::uint64_t total_ = 0;
    std::uint64_t max_ = 0;
};

}  // namespace stillpoint
