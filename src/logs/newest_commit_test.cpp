// The logs of other systems tell themselves what counts; a crash may tear what no thread was told of, and nothing else.

#include "logs/newest_commit.hpp"

#include <gtest/gtest.h>

#include "logs/durable_marker.hpp"
#include "support/redo_logs.hpp"

namespace stillpoint::logs {
namespace {

class NewestCommitOf : public ::testing::Test {
protected:
    RecordRef add(std::uint64_t log, Timestamp timestamp, std::uint64_t link = 0, std::uint32_t part = 0)
    {
        const RecordRef record = logs_.add(log, timestamp, test::Payload().words(0, std::vector<std::uint64_t>(20, timestamp)), part);
        header(record).link = link;
        return record;
    }
    RecordRef add_marked(std::uint64_t log, Timestamp timestamp) { return add(log, timestamp, encode_marker(timestamp)); }
    RecordHeader& header(const RecordRef& record) { return *reinterpret_cast<RecordHeader*>(logs_.byte_at(record.position)); }
    void tear(const RecordRef& record) { std::memset(logs_.byte_at(record.position) + cache_line_bytes, 0, cache_line_bytes); }
    void lose(const RecordRef& record) { std::memset(logs_.byte_at(record.position), 0, 4 * cache_line_bytes); }

    NewestCommit newest(CommitRule rule)
    {
        bounds_.rule = rule;
        const auto found = newest_commit(logs_.bytes(), bounds_);
        EXPECT_TRUE(found);
        bounds_.marker = found->timestamp;
        return *found;
    }
    /// Live transactions, or UINT64_MAX: damage.
    std::uint64_t live()
    {
        const auto index = scan_logs(logs_.bytes(), bounds_, nullptr);
        return index ? index->live_transactions : UINT64_MAX;
    }

    test::RedoLogs logs_;
    Bounds bounds_{10, 0, 1024, false};
};

TEST_F(NewestCommitOf, OwnMarkersCountUpToTheNewest)
{
    add_marked(0, 11);
    add_marked(1, 13);
    tear(add(0, 15));
    add(1, 17);
    EXPECT_EQ(newest(CommitRule::own_marker).timestamp, 13U);
    EXPECT_EQ(live(), 2U);
}

TEST_F(NewestCommitOf, AMarkerOfATornRecordDoesNotCount)
{
    add_marked(0, 11);
    tear(add_marked(1, 13));
    EXPECT_EQ(newest(CommitRule::own_marker).timestamp, 11U);
    EXPECT_EQ(live(), 1U);
}

TEST_F(NewestCommitOf, OfTwoEqualTimestampsTheOneWithoutMarkerDoesNotCount)
{
    add_marked(0, 13);
    tear(add(1, 13));
    EXPECT_EQ(newest(CommitRule::own_marker).timestamp, 13U);
    EXPECT_EQ(live(), 1U);
}

TEST_F(NewestCommitOf, ARecordThatIsDamagedBeforeAMarkerIsNoticed)
{
    const RecordRef damaged = add_marked(0, 11);
    add_marked(1, 13);
    tear(damaged);
    EXPECT_EQ(newest(CommitRule::own_marker).timestamp, 13U);
    EXPECT_EQ(live(), UINT64_MAX);
}

TEST_F(NewestCommitOf, OneLogCountsUpToItsFirstGap)
{
    add(0, 12, encode_marker(10));
    add(0, 14, encode_marker(12));
    const RecordRef gap = add(0, 16, encode_marker(12));
    add(0, 18, encode_marker(12));
    EXPECT_EQ(newest(CommitRule::whole_up_to_a_gap).timestamp, 18U);
    EXPECT_EQ(live(), 4U);
    tear(gap);
    EXPECT_EQ(newest(CommitRule::whole_up_to_a_gap).timestamp, 14U);
    EXPECT_EQ(live(), 2U);
    lose(gap);
    EXPECT_EQ(newest(CommitRule::whole_up_to_a_gap).timestamp, 14U);
    EXPECT_EQ(live(), 2U);
}

TEST_F(NewestCommitOf, ALaterRecordKnowsWhatWasDurable)
{
    const RecordRef lost = add(0, 12, encode_marker(10));
    add(0, 14, encode_marker(12));
    tear(lost);
    const NewestCommit found = newest(CommitRule::whole_up_to_a_gap);
    EXPECT_EQ(found.timestamp, 10U);
    EXPECT_EQ(found.known_durable, 12U);
}

TEST_F(NewestCommitOf, WholeRecordsCountInAnyOrder)
{
    add(0, 11);
    tear(add(0, 13));
    add(1, 15);
    EXPECT_EQ(newest(CommitRule::whole).timestamp, 15U);
    EXPECT_EQ(live(), 2U);
}

TEST_F(NewestCommitOf, ATornRecordBeforeAWholeOneOfTheSameLogIsNoticed)
{
    tear(add(0, 11));
    add(0, 13);
    newest(CommitRule::whole);
    EXPECT_EQ(live(), UINT64_MAX);
}

}  // namespace
}  // namespace stillpoint::logs
