// A refused opening leaves the process as it was: locks that are counted already, because a pool is still to be opened at its first use,
// stay counted.

#include "api/session.hpp"

#include <gtest/gtest.h>

#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/options.hpp"

namespace stillpoint {
namespace {

TEST(SessionOpening, ThatIsRefusedLeavesLocksCounted)
{
    ASSERT_TRUE(fase_activate());
    Options options;
    options.pool = "/nonexistent/folder/some.pool";
    EXPECT_FALSE(session_open(options));
    EXPECT_FALSE(session_open_further(options));
    EXPECT_TRUE(fase::gate.accounting.load(std::memory_order_relaxed));
    fase_deactivate();
}

}  // namespace
}  // namespace stillpoint
