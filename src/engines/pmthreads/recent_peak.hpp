#pragma once
// How much memory of a kind recent epochs used: what they did not use may go back to the system.

#include <algorithm>
#include <cstdint>
#include <utility>

namespace stillpoint::pmthreads {

/// The largest number of the last 5 to 10 seconds: of the period that goes on and of the one before it.
/// Threads: one.
class RecentPeak {
public:
    static constexpr std::uint64_t period_ns = 5'000'000'000;

    /// Called for each epoch, and now and then while there is none.
    void note(std::uint64_t used, std::uint64_t now_ns) noexcept
    {
        if (now_ns - begun_ns_ > period_ns) {
            before_ = std::exchange(current_, 0);
            begun_ns_ = now_ns;
        }
        current_ = std::max(current_, used);
    }
    [[nodiscard]] std::uint64_t peak() const noexcept { return std::max(current_, before_); }

private:
    std::uint64_t begun_ns_ = 0;
    std::uint64_t current_ = 0;
    std::uint64_t before_ = 0;
};

}  // namespace stillpoint::pmthreads
