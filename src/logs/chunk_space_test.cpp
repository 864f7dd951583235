// When a replay is due, and where a log's bytes lie: in DRAM, for the group commit, or on the medium.

#include "logs/chunk_space.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace stillpoint::logs {
namespace {

class Chunks : public ::testing::Test {
protected:
    static constexpr std::uint32_t count = 64;

    void SetUp() override
    {
        ASSERT_TRUE(space_.reserve(count, medium_.data(), true));
        space_.add(0, count * chunk_pages);
        space_.give_back_from(0);
    }
    void take(std::uint32_t chunks)
    {
        for (std::uint32_t i = 0; i < chunks; ++i) {
            taken_.push_back(space_.take(1));
            ASSERT_NE(taken_.back(), no_chunk);
        }
    }

    std::vector<std::byte> medium_ = std::vector<std::byte>(count * chunk_bytes);
    ChunkSpace space_;
    std::vector<ChunkIndex> taken_;
};

TEST_F(Chunks, AreReplayedWhenHalfOfThemIsUsed)
{
    take(count / 2);
    EXPECT_FALSE(space_.is_getting_full());
    take(1);
    EXPECT_TRUE(space_.is_getting_full());
}

TEST_F(Chunks, AreReplayedWhenSoManyMoreAreUsedAsTheLastRoundAskedFor)
{
    take(10);  // Threads that commit rarely keep theirs.
    space_.replay_after(4 * chunk_bytes);
    take(4);
    EXPECT_FALSE(space_.is_getting_full());
    take(1);
    EXPECT_TRUE(space_.is_getting_full());
}

TEST_F(Chunks, AreReplayedAtHalfWhateverTheLastRoundAskedFor)
{
    for (const std::uint64_t chunks : {count - 1, count, 1000 * count}) {
        space_.replay_after(chunks * chunk_bytes);
        EXPECT_FALSE(space_.is_getting_full());
    }
    take(count / 2 + 1);
    EXPECT_TRUE(space_.is_getting_full());
}

TEST_F(Chunks, ThatWereGivenBackLastAreTakenFirst)
{
    take(3);
    const ChunkIndex last = taken_[1];
    space_.give_back(last);
    EXPECT_EQ(space_.take(1), last);
}

TEST_F(Chunks, LieWhereTheirLogKeepsItsBytes)
{
    take(1);
    const ChunkIndex chunk = taken_.front();
    EXPECT_EQ(space_.bytes()[chunk], medium_.data() + space_.file_offset(chunk));  // As recovery reads them.
    space_.begin(chunk, true);
    EXPECT_EQ(space_.bytes()[chunk], space_.mirror(chunk));
    space_.begin(chunk, false);
    EXPECT_EQ(space_.bytes()[chunk], medium_.data() + space_.file_offset(chunk));
}

}  // namespace
}  // namespace stillpoint::logs
