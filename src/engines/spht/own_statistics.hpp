#pragma once
// The words of this engine in the page of statistics (statistics.inc in this folder).

#include "runtime/statistics.hpp"

namespace stillpoint::spht {

enum class OwnStatistic : std::size_t {
#define STATISTIC(name, unit, sentence) name,
#define COUNTER STATISTIC
#include "engines/spht/statistics.inc"
#undef COUNTER
#undef STATISTIC
};

inline constexpr StatisticRow own_statistic_rows[] = {
#define STATISTIC(name, unit, sentence) {#name, unit, sentence, false},
#define COUNTER(name, unit, sentence) {#name, unit, sentence, true},
#include "engines/spht/statistics.inc"
#undef COUNTER
#undef STATISTIC
};

[[nodiscard]] inline std::atomic<std::uint64_t>& own_statistic(OwnStatistic word) noexcept
{
    return statistics().engine_words[static_cast<std::size_t>(word)];
}

}  // namespace stillpoint::spht
