// Fault plans. Invariants: the n-th call of a kind, and only it, fails as the rule says; text that
// is not a rule is refused and never ignored.

#include <cerrno>
#include <csignal>
#include <gtest/gtest.h>

#include "media/fault_plan.hpp"

namespace stillpoint {
namespace {

FaultPlan plan(std::string_view text)
{
    const auto parsed = FaultPlan::parse(text);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return *parsed;
}

TEST(FaultPlan, LetsEverythingPassWithoutRules)
{
    FaultPlan none;
    EXPECT_FALSE(none.next(FaultPoint::write));
    EXPECT_FALSE(plan("").next(FaultPoint::sync));
}

TEST(FaultPlan, FailsOnlyTheCallThatTheRuleNames)
{
    FaultPlan two = plan("write:EIO@2");
    EXPECT_FALSE(two.next(FaultPoint::write));
    EXPECT_FALSE(two.next(FaultPoint::sync));
    EXPECT_EQ(two.next(FaultPoint::write).error, EIO);
    EXPECT_FALSE(two.next(FaultPoint::write));
}

TEST(FaultPlan, FailsEveryLaterCallWithAlways)
{
    FaultPlan always = plan("sync:EIO@2:always");
    EXPECT_FALSE(always.next(FaultPoint::sync));
    EXPECT_EQ(always.next(FaultPoint::sync).error, EIO);
    EXPECT_EQ(always.next(FaultPoint::sync).error, EIO);
}

TEST(FaultPlan, CountsEachKindOfCallByItself)
{
    FaultPlan mixed = plan("fallocate:ENOSPC@1,write:short@1,read:EINTR@2");
    EXPECT_EQ(mixed.next(FaultPoint::allocate).error, ENOSPC);
    EXPECT_TRUE(mixed.next(FaultPoint::write).cut_short);
    EXPECT_FALSE(mixed.next(FaultPoint::read));
    EXPECT_EQ(mixed.next(FaultPoint::read).error, EINTR);
}

TEST(FaultPlan, RefusesTextThatIsNotARule)
{
    for (const char* const text : {"write", "write:EIO", "write:EIO@", "write:EIO@0", "write:EIO@x", "write:EIO@1x", "write:EWHAT@1",
                                   "append:EIO@1", "write:EIO@1:sometimes", "sync:short@1", "persist:EIO@1", "persist:short@1",
                                   "persist:kill", ",", "@1:", "write:EIO@1,,sync:EIO@1", "write:EIO@99999999999999999999"}) {
        const auto parsed = FaultPlan::parse(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code, SP_E_INVALID_ARGUMENT);
    }
}

TEST(FaultPlan, CountsPersistPointsAlsoWithoutRules)
{
    FaultPlan none;
    none.persist();
    none.persist();
    EXPECT_EQ(none.persist_points(), 2u);
    FaultPlan later = plan("persist:kill@3");
    later.persist();
    later.persist();
    EXPECT_EQ(later.persist_points(), 2u);
}

TEST(FaultPlanDeathTest, KillsTheProcessAtThePointThatTheRuleNames)
{
    FaultPlan persist = plan("persist:kill@2");
    persist.persist();
    EXPECT_EXIT(persist.persist(), testing::KilledBySignal(SIGKILL), "");
    FaultPlan write = plan("write:kill@1");
    EXPECT_FALSE(write.next(FaultPoint::sync));
    EXPECT_EXIT((void)write.next(FaultPoint::write), testing::KilledBySignal(SIGKILL), "");
}

TEST(FaultPlan, RefusesMoreRulesThanItKeeps)
{
    std::string text = "sync:EIO@1";
    for (int i = 2; i < 12; ++i) {
        text += ",sync:EIO@" + std::to_string(i);
    }
    EXPECT_FALSE(FaultPlan::parse(text));
}

}  // namespace
}  // namespace stillpoint
