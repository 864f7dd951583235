// Vectors of 256 bits are read and written whole.

#include "pool_fixture.hpp"
#include "wide_vectors.h"

#if defined(__x86_64__)
namespace {

class WideVectors : public InBothMemories {};
STILLPOINT_IN_BOTH_MEMORIES(WideVectors);

TEST_P(WideVectors, AreWholeAndDurable)
{
    if (__builtin_cpu_supports("avx") == 0) {
        GTEST_SKIP() << "this CPU has no AVX";
    }
    auto& vectors = root<wide_vectors>("state");
    wide_add(&vectors);
    wide_add(&vectors);
    restart();
    auto& found = root<wide_vectors>("state");
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(found.one[i], 2 * (i + 1));
        EXPECT_EQ(found.two[i], 4 * (i + 1));
    }
}

}  // namespace
#endif
