#include "engines/pmthreads/recent_peak.hpp"

#include <gtest/gtest.h>

namespace stillpoint::pmthreads {
namespace {

constexpr std::uint64_t first_ns = 1'000 * RecentPeak::period_ns;
constexpr std::uint64_t step_ns = RecentPeak::period_ns / 50;

TEST(RecentPeak, KeepsAPeakForOnePeriodAtLeastAndTwoAtMost)
{
    RecentPeak used;
    used.note(100, first_ns);
    EXPECT_EQ(used.peak(), 100U);
    std::uint64_t now_ns = first_ns;
    for (; now_ns <= first_ns + RecentPeak::period_ns; now_ns += step_ns) {
        used.note(3, now_ns);
        EXPECT_EQ(used.peak(), 100U);
    }
    for (; now_ns <= first_ns + 2 * RecentPeak::period_ns + 2 * step_ns; now_ns += step_ns) {
        used.note(3, now_ns);
    }
    EXPECT_EQ(used.peak(), 3U);
}

TEST(RecentPeak, KeepsTheNewestNumberAfterALongPause)
{
    RecentPeak used;
    used.note(100, first_ns);
    used.note(7, first_ns + 10 * RecentPeak::period_ns);
    EXPECT_EQ(used.peak(), 100U);  // the period before, as far as it was noted
    used.note(7, first_ns + 12 * RecentPeak::period_ns);
    EXPECT_EQ(used.peak(), 7U);
}

}  // namespace
}  // namespace stillpoint::pmthreads
