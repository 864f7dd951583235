#pragma once
// The workloads of the benchmark: the patterns of glibc's own benchmarks, rewritten.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

namespace stillpoint::bench {

inline double seconds(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// xorshift64*: a few instructions, so that it hides nothing.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
    std::uint64_t next()
    {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1du;
    }

private:
    std::uint64_t state_;
};

/// As bench-malloc-simple: n blocks of one size, then half of them freed first in, first out, the
/// other half last in, first out.
class Simple {
public:
    Simple(std::size_t size_bytes, std::size_t blocks) : size_(size_bytes), blocks_(blocks) {}

    template <class Allocator>
    void warm_up(Allocator&)
    {
    }
    /// Returns the number of allocate-free pairs.
    template <class Allocator>
    std::uint64_t run(Allocator& allocator)
    {
        const std::size_t n = blocks_.size();
        for (void*& block : blocks_) {
            block = allocator.allocate(size_);
            *static_cast<char*>(block) = 1;
        }
        for (std::size_t i = 0; i < n / 2; ++i) {
            allocator.release(blocks_[i]);
        }
        for (std::size_t i = n; i-- > n / 2;) {
            allocator.release(blocks_[i]);
        }
        return n;
    }
    template <class Allocator>
    void clean_up(Allocator&)
    {
    }

private:
    std::size_t size_;
    std::vector<void*> blocks_;
};

/// As bench-malloc-thread: 1024 live blocks; a random one is replaced by one of a random size.
class Churn {
public:
    /// `inverse_square`: the probability of a size falls with its square, as there; else all sizes are alike.
    Churn(std::size_t least, std::size_t most, bool inverse_square, std::uint64_t seed) : random_(seed), blocks_(1024)
    {
        for (auto& size : sizes_) {
            const double u = static_cast<double>(random_.next() >> 11) * 0x1p-53;
            const auto low = static_cast<double>(least);
            const auto high = static_cast<double>(most);
            size = static_cast<std::uint32_t>(inverse_square ? 1 / (1 / low - u * (1 / low - 1 / high)) : low + u * (high - low));
        }
    }
    template <class Allocator>
    void warm_up(Allocator& allocator)
    {
        for (int i = 0; i < 8; ++i) {
            run(allocator);
        }
    }
    template <class Allocator>
    std::uint64_t run(Allocator& allocator)
    {
        for (int i = 0; i < 1000; ++i) {
            const std::uint64_t draw = random_.next();
            void*& block = blocks_[draw % blocks_.size()];
            if (block != nullptr) {
                allocator.release(block);
            }
            block = allocator.allocate(sizes_[(draw >> 32) % sizes_.size()]);
            *static_cast<char*>(block) = 1;
        }
        return 1000;
    }
    template <class Allocator>
    void clean_up(Allocator& allocator)
    {
        for (void*& block : blocks_) {
            if (block != nullptr) {
                allocator.release(block);
            }
            block = nullptr;
        }
    }

private:
    Random random_;
    std::array<std::uint32_t, 16384> sizes_{};
    std::vector<void*> blocks_;
};

struct Cost {
    double cpu_ns;   ///< CPU time of all threads per allocate-free pair
    double wall_ns;  ///< elapsed time per pair of one thread
};

/// Runs the workload for `slice` seconds of elapsed time on the calling thread.
template <class Allocator, class Workload>
Cost measure(Allocator allocator, Workload workload, double slice)
{
    workload.warm_up(allocator);
    const double cpu_start = seconds(CLOCK_THREAD_CPUTIME_ID);
    const double start = seconds(CLOCK_MONOTONIC);
    std::uint64_t pairs = 0;
    double now = start;
    while (now < start + slice) {
        for (int i = 0; i < 16; ++i) {
            pairs += workload.run(allocator);
        }
        now = seconds(CLOCK_MONOTONIC);
    }
    const double cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
    workload.clean_up(allocator);
    const double per_pair = 1e9 / static_cast<double>(pairs);
    return {cpu * per_pair, (now - start) * per_pair};
}

inline double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace stillpoint::bench
