// Invariants: no cut lies between the first part of an open FASE and its end; cuts never go back; with none open the cut is the present.

#include "engines/nvthreads/open_fases.hpp"

#include <gtest/gtest.h>

namespace stillpoint::nvthreads {
namespace {

class OpenFasesTest : public ::testing::Test {
protected:
    void SetUp() override { clock_.start(100, logs::ClockKind::counter); }

    logs::CommitClock clock_;
    OpenFases fases_;
};

TEST_F(OpenFasesTest, CutAtThePresentWhileNoneIsOpen)
{
    const Timestamp ended = clock_.next();
    EXPECT_EQ(fases_.cut(clock_), ended);
    EXPECT_FALSE(fases_.any());
}

TEST_F(OpenFasesTest, KeepTheCutInFrontOfTheOldest)
{
    const Timestamp before = clock_.next();
    const Timestamp first = fases_.open(clock_);
    static_cast<void>(fases_.open(clock_));
    static_cast<void>(clock_.next());
    EXPECT_GE(fases_.cut(clock_), before);
    EXPECT_LT(fases_.cut(clock_), first);
}

TEST_F(OpenFasesTest, KeepTheCutWhileOneOfThemIsOpen)
{
    const Timestamp first = fases_.open(clock_);
    static_cast<void>(fases_.open(clock_));
    fases_.close();
    EXPECT_LT(fases_.cut(clock_), first);
    EXPECT_TRUE(fases_.any());
    fases_.close();
    const Timestamp last = clock_.next();
    EXPECT_EQ(fases_.cut(clock_), last);
}

TEST_F(OpenFasesTest, NeverLetTheCutGoBack)
{
    Timestamp cut = fases_.cut(clock_);
    for (int i = 0; i < 5; ++i) {
        static_cast<void>(fases_.open(clock_));
        EXPECT_GE(fases_.cut(clock_), cut);
        fases_.close();
        EXPECT_GE(fases_.cut(clock_), cut);
        cut = fases_.cut(clock_);
    }
}

}  // namespace
}  // namespace stillpoint::nvthreads
