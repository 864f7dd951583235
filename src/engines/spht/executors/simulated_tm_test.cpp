// The simulated hardware transactional memory. Invariants:
//   - nothing of a transaction is visible before its end, and all of it after;
//   - of two transactions that use one line, and one of which stores there, at most one ends;
//   - a transaction that has lost a line loads nothing any more;
//   - the same seed draws the same aborts, of every kind.

#include "engines/spht/executors/simulated_tm.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <vector>

namespace stillpoint::spht {
namespace {

constexpr std::uint64_t all_bytes = ~std::uint64_t{0};

struct alignas(64) Line {
    std::uint64_t words[8];
};

class SimulatedTransactions : public testing::Test {
protected:
    void prepare(std::uint64_t seed)
    {
        ASSERT_TRUE(machine_.prepare(4, seed));
        for (std::uint64_t core = 0; core < 2; ++core) {
            cores_.push_back(std::make_unique<SimulatedTm>(machine_, core));
            ASSERT_TRUE(cores_.back()->reserve());
        }
    }
    SimulatedTm& one() { return *cores_[0]; }
    SimulatedTm& other() { return *cores_[1]; }
    static std::uint64_t loaded(SimulatedTm& tm, const std::uint64_t& word)
    {
        std::uint64_t value = 0;
        EXPECT_TRUE(tm.load(&word, value));
        return value;
    }

    SimulatedMachine machine_;
    std::vector<std::unique_ptr<SimulatedTm>> cores_;
    Line lines_[1024]{};
};

TEST_F(SimulatedTransactions, ShowTheirStoresAtTheirEnd)
{
    prepare(0);
    ASSERT_TRUE(one().begin().started);
    EXPECT_TRUE(one().store(&lines_[0].words[0], 0x1122, 0xff));
    EXPECT_TRUE(one().store(&lines_[1].words[0], 7, all_bytes));
    EXPECT_EQ(loaded(one(), lines_[0].words[0]), 0x22U);
    EXPECT_EQ(lines_[0].words[0], 0U);
    EXPECT_TRUE(one().test());
    EXPECT_TRUE(one().end());
    EXPECT_FALSE(one().test());
    EXPECT_EQ(lines_[0].words[0], 0x22U);
    EXPECT_EQ(lines_[1].words[0], 7U);
}

TEST_F(SimulatedTransactions, LeaveNothingWhenTheyAbort)
{
    prepare(0);
    ASSERT_TRUE(one().begin().started);
    EXPECT_TRUE(one().store(&lines_[0].words[0], 1, all_bytes));
    one().abort(AbortCode::must_be_alone);
    EXPECT_EQ(one().last().kind, AbortKind::code);
    EXPECT_EQ(one().last().code, AbortCode::must_be_alone);
    EXPECT_FALSE(one().end());
    EXPECT_EQ(lines_[0].words[0], 0U);
}

TEST_F(SimulatedTransactions, LoseALineThatAnotherStoresTo)
{
    prepare(0);
    ASSERT_TRUE(one().begin().started);
    ASSERT_TRUE(other().begin().started);
    static_cast<void>(loaded(one(), lines_[0].words[0]));
    EXPECT_TRUE(other().store(&lines_[0].words[5], 1, all_bytes));  // Another word of the line.
    std::uint64_t value = 0;
    EXPECT_FALSE(one().test());
    EXPECT_FALSE(one().load(&lines_[3].words[0], value));
    EXPECT_EQ(one().last().kind, AbortKind::conflict);
    EXPECT_TRUE(other().end());
}

TEST_F(SimulatedTransactions, LoseALineThatTheyStoredToAndAnotherLoads)
{
    prepare(0);
    ASSERT_TRUE(one().begin().started);
    ASSERT_TRUE(other().begin().started);
    EXPECT_TRUE(one().store(&lines_[0].words[0], 1, all_bytes));
    EXPECT_EQ(loaded(other(), lines_[0].words[0]), 0U);
    EXPECT_FALSE(one().end());
    EXPECT_TRUE(other().end());
    EXPECT_EQ(lines_[0].words[0], 0U);
}

TEST_F(SimulatedTransactions, LoadOneLineTogether)
{
    prepare(0);
    ASSERT_TRUE(one().begin().started);
    ASSERT_TRUE(other().begin().started);
    static_cast<void>(loaded(one(), lines_[0].words[0]));
    static_cast<void>(loaded(other(), lines_[0].words[0]));
    EXPECT_TRUE(one().end());
    EXPECT_TRUE(other().end());
}

TEST_F(SimulatedTransactions, LoseALineThatIsStoredToOutsideOfTransactions)
{
    prepare(0);
    ASSERT_TRUE(one().begin().started);
    static_cast<void>(loaded(one(), lines_[0].words[0]));
    other().note_plain_store(&lines_[1].words[0]);
    EXPECT_TRUE(one().test());
    other().note_plain_store(&lines_[0].words[0]);
    EXPECT_FALSE(one().end());
}

TEST_F(SimulatedTransactions, HoldSoManyLines)
{
    prepare(0);
    ASSERT_TRUE(one().begin().started);
    std::uint64_t stored = 0;
    while (one().store(&lines_[stored].words[0], 1, all_bytes)) {
        ++stored;
    }
    EXPECT_EQ(stored, SimulatedTm::lines_stored_max);
    EXPECT_EQ(one().last().kind, AbortKind::capacity);
}

/// The kinds of the aborts of a seed, and how many transactions ended.
std::vector<int> history(std::uint64_t seed, Line& line)
{
    SimulatedMachine machine;
    EXPECT_TRUE(machine.prepare(1, seed));
    SimulatedTm tm(machine, 0);
    EXPECT_TRUE(tm.reserve());
    std::vector<int> kinds;
    for (int i = 0; i < 200; ++i) {
        EXPECT_TRUE(tm.begin().started);
        bool runs = true;
        std::uint64_t value = 0;
        for (int step = 0; step < 30 && runs; ++step) {
            runs = tm.load(&line.words[0], value);
        }
        kinds.push_back(runs && tm.end() ? -1 : static_cast<int>(tm.last().kind));
    }
    return kinds;
}

TEST_F(SimulatedTransactions, AbortInEveryWayByTheirSeed)
{
    const std::vector<int> first = history(3, lines_[0]);
    EXPECT_EQ(first, history(3, lines_[0]));
    EXPECT_NE(first, history(4, lines_[0]));
    EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 6U);  // Every kind, and those that ended.
    const std::vector<int> none = history(0, lines_[0]);
    EXPECT_EQ(std::set<int>(none.begin(), none.end()), std::set<int>{-1});
}

}  // namespace
}  // namespace stillpoint::spht
