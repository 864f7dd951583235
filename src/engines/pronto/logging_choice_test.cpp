// Whether a sibling logs: what the choice makes of the times that it is told.

#include <functional>

#include <gtest/gtest.h>

#include "engines/pronto/thread_log.hpp"

namespace stillpoint::pronto {
namespace {

/// Does operations; returns how many the sibling did. `time(by_sibling, number)`: in ns.
unsigned do_operations(LoggingChoice& choice, unsigned count, const std::function<std::uint64_t(bool, unsigned)>& time)
{
    unsigned by_sibling = 0;
    for (unsigned number = 0; number < count; ++number) {
        bool measured = false;
        const bool handed_over = choice.choose(measured);
        by_sibling += handed_over ? 1 : 0;
        if (measured) {
            choice.note(handed_over, time(handed_over, number));
        }
    }
    return by_sibling;
}

constexpr unsigned looked_at = 32;
constexpr unsigned many = 5000;

TEST(LoggingChoice, TakesTheSiblingWhereItIsFaster)
{
    LoggingChoice choice;
    EXPECT_GT(do_operations(choice, many, [](bool by_sibling, unsigned) { return by_sibling ? 500u : 900u; }), many - looked_at);
}

TEST(LoggingChoice, LeavesTheSiblingWhereItIsSlower)
{
    LoggingChoice choice;
    EXPECT_LE(do_operations(choice, many, [](bool by_sibling, unsigned) { return by_sibling ? 900u : 500u; }), looked_at);
}

TEST(LoggingChoice, IsNotMisledByOperationsThatWereInterrupted)
{
    LoggingChoice choice;
    const auto time = [](bool by_sibling, unsigned number) { return number == 0 || number == 6 ? 10'000'000u : by_sibling ? 900u : 500u; };
    EXPECT_LE(do_operations(choice, many, time), looked_at);
}

TEST(LoggingChoice, LeavesASiblingThatIsLateAgainAndAgain)
{
    LoggingChoice choice;
    const auto time = [](bool by_sibling, unsigned) { return by_sibling ? 500u : 900u; };
    ASSERT_GT(do_operations(choice, 1000, time), 900u);
    for (unsigned late = 0; late < 4; ++late) {
        choice.note_late();
    }
    EXPECT_EQ(do_operations(choice, 1000, time), 0u);
}

TEST(LoggingChoice, LooksAgainLaterAndLessOftenWhereItDoesNotPay)
{
    LoggingChoice choice;
    const auto time = [](bool by_sibling, unsigned) { return by_sibling ? 900u : 500u; };
    const unsigned at_first = do_operations(choice, 100'000, time);
    const unsigned later = do_operations(choice, 100'000, time);
    EXPECT_GT(at_first, 16u);
    EXPECT_LT(later, at_first);
}

}  // namespace
}  // namespace stillpoint::pronto
