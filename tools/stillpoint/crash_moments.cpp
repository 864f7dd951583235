#include "crash_moments.hpp"

#include <cmath>

#include "output.hpp"

namespace stillpoint::tool {

namespace {

constexpr double far_point_max = 4096;

/// SplitMix64 (Steele, Lea, Flood): one step from any state is well mixed, so that rounds need no history.
class SplitMix64 {
public:
    SplitMix64(std::uint64_t seed, std::uint64_t round) noexcept : state_(seed * 0x9e3779b97f4a7c15u + round) { next(); }

    /// In [0, 1).
    double next() noexcept
    {
        state_ += 0x9e3779b97f4a7c15u;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
        mixed ^= mixed >> 31;
        return static_cast<double>(mixed >> 11) * 0x1.0p-53;
    }

private:
    std::uint64_t state_;
};

}  // namespace

std::string Moment::describe() const
{
    return point != 0 ? text_of("at persist point {}", point) : text_of("after {:.2f} ms", static_cast<double>(after_ns) / 1e6);
}

Moment MomentChooser::of_round(std::uint64_t round) noexcept
{
    SplitMix64 dice(seed_, round);
    const bool at_point = moments_ == Moments::persist || (moments_ == Moments::both && dice.next() < 0.5);
    Moment moment;
    if (!at_point) {
        const double span_ms = (max_ms_ - min_ms_) * (dice.next() < 1.0 / 3 ? 0.1 : 1.0);
        moment.after_ns = static_cast<std::uint64_t>((min_ms_ + span_ms * dice.next()) * 1e6);
        return moment;
    }
    moment.after_ns = static_cast<std::uint64_t>(max_ms_ * 1e6);
    moment.is_far = point_rounds_++ % 3 == 2;
    moment.point = moment.is_far ? static_cast<std::uint64_t>(std::exp2(dice.next() * std::log2(far_point_max))) : next_point_++;
    return moment;
}

void MomentChooser::note(const Moment& moment, bool was_met) noexcept
{
    if (moment.point == 0 || moment.is_far) {
        return;
    }
    missed_ = was_met ? 0 : missed_ + 1;
    if (missed_ == 3) {
        missed_ = 0;
        next_point_ = 1;
    }
}

}  // namespace stillpoint::tool
