// How long a checkpoint of respct holds threads at their restart points where one of them does not come.

#include <cstdint>
#include <gtest/gtest.h>

#include "engines/respct/checkpointer.hpp"

namespace stillpoint::respct {
namespace {

constexpr std::uint64_t ms = 1'000'000;

TEST(RespctAttempts, LastTwiceAsLongAsTheOneBeforeUpToASecond)
{
    const std::uint64_t lengths[] = {20, 40, 80, 160, 320, 640, 1000, 1000};
    for (unsigned withdrawn = 0; withdrawn < std::size(lengths); ++withdrawn) {
        EXPECT_EQ(attempt_length_ns(20 * ms, withdrawn), lengths[withdrawn] * ms);
    }
    EXPECT_EQ(attempt_length_ns(20 * ms, 1'000'000), 1000 * ms);
    EXPECT_EQ(attempt_length_ns(3000 * ms, 0), attempt_max_ns);
}

}  // namespace
}  // namespace stillpoint::respct
