// Hardware transactions, where the CPU has some. Invariants:
//   - works() does not raise a signal on a CPU without them;
//   - a transaction that ends leaves its stores; one that aborts leaves none, and tells its code.

#include "arch/rtm.hpp"

#include <gtest/gtest.h>

namespace stillpoint::arch {
namespace {

TEST(Rtm, CommitsAndRollsBackWhereTheCpuHasIt)
{
    if (!Rtm::works()) {
        GTEST_SKIP() << "no transaction of this CPU commits";
    }
    volatile unsigned stored = 0;
    unsigned status = 0;
    for (int tries = 0; tries < 1000 && stored == 0; ++tries) {
        if (Rtm::begin() == Rtm::started) {
            stored = 1;
            Rtm::end();
        }
    }
    EXPECT_EQ(stored, 1U);
    for (int tries = 0; tries < 1000 && (status & Rtm::aborted_by_code) == 0; ++tries) {
        status = Rtm::begin();
        if (status == Rtm::started) {
            stored = 2;
            Rtm::abort<7>();
        }
    }
    EXPECT_EQ(Rtm::code_in(status), 7U);
    EXPECT_EQ(stored, 1U);
}

}  // namespace
}  // namespace stillpoint::arch
