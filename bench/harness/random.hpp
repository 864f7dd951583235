#pragma once
// A fast generator of random numbers: its cost must not hide what is measured.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bench {

class Random {
public:
    explicit Random(std::uint64_t seed = 1) noexcept : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

    std::uint64_t next() noexcept  // xorshift64*
    {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 2685821657736338717u;
    }
    /// Uniform below `limit` (which is far below 2^32).
    std::uint64_t below(std::uint64_t limit) noexcept { return (next() >> 32) * limit >> 32; }

private:
    std::uint64_t state_;
};

/// Fisher and Yates.
template <class T>
void shuffle(std::vector<T>& all, Random& random)
{
    for (std::size_t i = all.size(); i > 1; --i) {
        std::swap(all[i - 1], all[random.below(i)]);
    }
}

}  // namespace bench
