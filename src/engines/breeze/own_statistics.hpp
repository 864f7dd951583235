#pragma once
// The words of this engine in a pool's page of statistics (statistics.inc in this folder).

#include "runtime/statistics.hpp"

namespace stillpoint::breeze {

enum class OwnStatistic : std::size_t {
#define STATISTIC(name, unit, sentence) name,
#define COUNTER STATISTIC
#include "engines/breeze/statistics.inc"
#undef COUNTER
#undef STATISTIC
};

inline constexpr StatisticRow own_statistic_rows[] = {
#define STATISTIC(name, unit, sentence) {#name, unit, sentence, false},
#define COUNTER(name, unit, sentence) {#name, unit, sentence, true},
#include "engines/breeze/statistics.inc"
#undef COUNTER
#undef STATISTIC
};

}  // namespace stillpoint::breeze
