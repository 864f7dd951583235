#pragma once
// UnpacedPasses: whether one more pass without pauses copies ahead of a stop.

#include <cstdint>

#include "core/units.hpp"

namespace stillpoint::pmthreads {

/// A pass with pauses leaves what the program wrote in its pauses. A line is copied much faster than a program writes it, so each
/// pass without pauses leaves a small part of the one before; unless the thread lost its CPU meanwhile: then one more takes what was
/// written in that time. A program that writes as fast as a pass copies leaves as much each time: the number of passes is bounded, and
/// so is what they copy. Threads: one.
class UnpacedPasses {
public:
    static constexpr std::uint64_t small_rest_bytes = mib / 8;
    static constexpr std::uint64_t large_rest_bytes = 32 * mib;  ///< All CPUs copy it sooner, in the stop.
    /// A pass that finds little takes less, and a thread that loses its CPU is without it for longer.
    static constexpr std::uint64_t undisturbed_ns = 1'000'000;
    static constexpr std::uint64_t copied_bytes_max = 64 * mib;  ///< by these passes; the one that goes beyond is the last
    static constexpr unsigned passes_max = 16;

    /// `copied_bytes`: by the pass before, which had pauses.
    explicit UnpacedPasses(std::uint64_t copied_bytes) noexcept : rest_bytes_(copied_bytes) {}

    [[nodiscard]] bool wants_another() const noexcept
    {
        const bool little_is_left = rest_bytes_ <= small_rest_bytes && pass_ns_ <= undisturbed_ns;
        return passes_ < passes_max && !little_is_left && rest_bytes_ <= large_rest_bytes && copied_here_ <= copied_bytes_max;
    }
    /// A pass without pauses has copied so much in so long.
    void pass_done(std::uint64_t copied_bytes, std::uint64_t pass_ns) noexcept
    {
        ++passes_;
        rest_bytes_ = copied_bytes;
        copied_here_ += copied_bytes;
        pass_ns_ = pass_ns;
    }
    [[nodiscard]] unsigned passes() const noexcept { return passes_; }

private:
    std::uint64_t rest_bytes_;
    std::uint64_t copied_here_ = 0;
    std::uint64_t pass_ns_ = 0;
    unsigned passes_ = 0;
};

}  // namespace stillpoint::pmthreads
