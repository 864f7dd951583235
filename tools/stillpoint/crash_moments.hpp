#pragma once
// When `crashtest` kills: each round's moment follows from the seed and the number of the round.

#include <cstdint>
#include <string>

namespace stillpoint::tool {

enum class Moments { random, persist, both };

/// One kill: at the n-th persist point if `point` is not 0, and after `after_ns` at the latest.
struct Moment {
    std::uint64_t point = 0;
    std::uint64_t after_ns = 0;
    bool is_far = false;  ///< a point by chance, not the next one
    [[nodiscard]] std::string describe() const;
};

/// Chooses. Persist points are met one after the other (1, 2, 3, ...), and between them some far ones by chance.
/// A third of the random moments lie in the first tenth of the time, where pools are made and recovered.
class MomentChooser {
public:
    MomentChooser(std::uint64_t seed, Moments moments, double min_ms, double max_ms) noexcept
        : seed_(seed), moments_(moments), min_ms_(min_ms), max_ms_(max_ms)
    {
    }
    [[nodiscard]] Moment of_round(std::uint64_t round) noexcept;
    /// The program ended by itself before the point of its round: begins again with the first.
    void sweep_has_ended() noexcept { next_point_ = 1; }
    /// Whether the point of a round came in time. After three that did not, begins again with the first.
    void note(const Moment& moment, bool was_met) noexcept;

private:
    std::uint64_t seed_;
    Moments moments_;
    double min_ms_;
    double max_ms_;
    std::uint64_t next_point_ = 1;
    std::uint64_t point_rounds_ = 0;
    unsigned missed_ = 0;
};

}  // namespace stillpoint::tool
