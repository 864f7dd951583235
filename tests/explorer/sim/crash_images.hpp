#pragma once
// Chooses, of the images that a crash may leave now, which to look at: all where there are few,
// else those that protocols tend to get wrong, and a seeded random sample.

#include <cstdint>
#include <functional>
#include <random>

#include "sim/crash_model.hpp"

namespace stillpoint::sim {

struct ImageChoice {
    std::uint64_t exhaustive_max = 4096;  ///< images of one moment; more than that are sampled
    std::uint64_t sample = 256;           ///< images of a moment that has more
    /// Only images in which each unit has all of its newest bytes or all but one word, and those in which it has
    /// none of them or one word: what completes, much later, a record that was torn.
    bool torn_words_only = false;
};

struct ImagesOfAMoment {
    double possible = 1;     ///< the product of the units' versions
    bool exhaustive = true;
    std::uint64_t visited = 0;
};

/// Calls visit(image) until it returns false. Beyond exhaustive_max: nothing landed; all landed; each
/// unit alone; each missing; each torn once in either surrounding; everything up to an event and nothing
/// after it, and the reverse; then random ones. The same generator state gives the same images.
ImagesOfAMoment for_each_image(const CrashModel& model, const ImageChoice& choice, std::mt19937_64& random,
                               const std::function<bool(const CrashImage&)>& visit);

}  // namespace stillpoint::sim
