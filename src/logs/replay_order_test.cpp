// Records of several logs come into one order, by timestamp or along links; a link that is missing or wrong never gives a wrong order.

#include "logs/replay_order.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "logs/log_walk.hpp"
#include "support/redo_logs.hpp"

namespace stillpoint::logs {
namespace {

class OrderOfReplay : public ::testing::Test {
protected:
    /// Random transactions of `logs` logs, some in two parts.
    void write(unsigned logs, unsigned transactions)
    {
        std::mt19937_64 random(7);
        for (unsigned log = 0; log < logs; ++log) {
            logs_.begin_chunk(log, logs_.add_chunk());
        }
        for (unsigned i = 1; i <= transactions; ++i) {
            const std::uint64_t log = random() % logs;
            const Timestamp timestamp = 3 * i;
            const auto payload = test::Payload().words(i % 512, {random()});
            const bool has_two = i % 7 == 0;
            ordered_.push_back(logs_.add(log, timestamp, payload, has_two ? more_parts : 0));
            if (has_two) {
                ordered_.push_back(logs_.add(log, timestamp, payload, 1));
            }
        }
        logs_count_ = logs;
    }
    std::vector<RecordRef> by_timestamp(std::size_t room)
    {
        std::vector<LogHead> heads;
        for (unsigned log = 0; log < logs_count_; ++log) {
            heads.emplace_back(logs_.records(log));
        }
        std::vector<RecordRef> out(room);
        out.resize(order_by_timestamp(heads, out));
        return out;
    }
    bool follow(LinkDirection direction, std::size_t count)
    {
        followed_.assign(count, {});
        return follow_links(logs_.bytes(), direction, ordered_.front(), ordered_.back(), followed_);
    }
    Bounds bounds() { return {0, ordered_.back().timestamp, 1024, true}; }

    test::RedoLogs logs_;
    unsigned logs_count_ = 0;
    std::vector<RecordRef> ordered_;
    std::vector<RecordRef> followed_;
};

TEST_F(OrderOfReplay, ByTimestampAllLogsBecomeOneSequence)
{
    for (const unsigned logs : {1U, 2U, 9U}) {
        logs_ = {};
        ordered_.clear();
        write(logs, 500);
        EXPECT_EQ(by_timestamp(ordered_.size() + 1), ordered_);
        ordered_.resize(100);
        EXPECT_EQ(by_timestamp(100), ordered_) << "as many as there is room for";
    }
}

TEST_F(OrderOfReplay, OfEqualTimestampsTheEarlierLogComesFirst)
{
    logs_count_ = 2;
    const auto payload = test::Payload().words(0, {1});
    const RecordRef second = logs_.add(1, 5, payload);
    const RecordRef first = logs_.add(0, 5, payload, more_parts);
    const RecordRef part = logs_.add(0, 5, payload, 1);
    EXPECT_EQ(by_timestamp(3), (std::vector{first, part, second}));
}

TEST_F(OrderOfReplay, LinksLeadThroughAllRecordsInBothDirections)
{
    write(5, 400);
    for (const LinkDirection direction : {LinkDirection::forward, LinkDirection::backward}) {
        logs_.link(ordered_, direction == LinkDirection::forward);
        ASSERT_TRUE(follow(direction, ordered_.size()));
        EXPECT_EQ(followed_, ordered_);
        EXPECT_FALSE(follow(direction, ordered_.size() - 1));
        EXPECT_FALSE(follow(direction, ordered_.size() + 1));
    }
}

TEST_F(OrderOfReplay, TheEndNeedsNoPosition)
{
    write(2, 50);
    logs_.link(ordered_, false);
    std::vector<RecordRef> out(ordered_.size());
    EXPECT_TRUE(follow_links(logs_.bytes(), LinkDirection::backward, {ordered_.front().timestamp, 0}, ordered_.back(), out));
    EXPECT_EQ(out, ordered_);
}

TEST_F(OrderOfReplay, ALinkThatIsMissingOrDamagedIsNotFollowed)
{
    write(4, 60);
    for (const bool forward : {true, false}) {
        logs_.link(ordered_, forward);
        const LinkDirection direction = forward ? LinkDirection::forward : LinkDirection::backward;
        for (std::size_t i = forward ? 0 : 1; i < ordered_.size() - (forward ? 1 : 0); ++i) {
            std::uint64_t& link = logs_.header_at(ordered_[i]).link;
            const std::uint64_t whole = link;
            for (unsigned bit = 0; bit < 64; ++bit) {
                link = whole ^ (std::uint64_t{1} << bit);
                EXPECT_FALSE(follow(direction, ordered_.size())) << i << ", bit " << bit;
            }
            for (const std::uint64_t wrong :
                 {std::uint64_t{0}, ordered_[i].timestamp << 1, ordered_[i].position | 1, ordered_.front().position | 1}) {
                link = wrong;
                if (wrong != whole) {
                    EXPECT_FALSE(follow(direction, ordered_.size())) << i << ", " << wrong;
                }
            }
            link = whole;
        }
    }
}

TEST_F(OrderOfReplay, LinksThatLeaveARecordOutAreNotFollowed)
{
    write(3, 30);
    logs_.link(ordered_, true);
    logs_.header_at(ordered_[4]).link = logs_.header_at(ordered_[5]).link;
    EXPECT_FALSE(follow(LinkDirection::forward, ordered_.size()));
}

TEST_F(OrderOfReplay, ASequenceIsComparedWithTheScannedLogs)
{
    write(4, 100);
    const auto index = scan_logs(logs_.bytes(), bounds(), nullptr);
    ASSERT_TRUE(index) << index.error().message;
    const auto is_whole = [&](const std::vector<RecordRef>& sequence) { return has_all_of(sequence, *index, logs_.bytes()).value(); };
    EXPECT_TRUE(is_whole(ordered_));
    std::vector<RecordRef> changed = ordered_;
    changed.pop_back();
    EXPECT_FALSE(is_whole(changed));
    changed = ordered_;
    changed[7].position += cache_line_bytes * 500;
    EXPECT_FALSE(is_whole(changed));
    changed = ordered_;
    changed[7].position = position_of(100, 64);
    EXPECT_FALSE(is_whole(changed));
}

TEST_F(OrderOfReplay, AnOwnLogIsWalkedUpToALimit)
{
    write(1, 100);
    LogPiece piece{0, sizeof(ChunkHeader), static_cast<std::uint32_t>(offset_in_chunk(logs_.end(0)))};
    RecordList list;
    ASSERT_TRUE(list.reserve(ordered_.size() - 1, "a test"));
    ASSERT_TRUE(walk_piece(logs_.bytes(), piece, 3 * 50, list));
    EXPECT_EQ(list.records().back().timestamp, 150U);
    EXPECT_TRUE(std::equal(list.records().begin(), list.records().end(), ordered_.begin()));
    EXPECT_FALSE(walk_piece(logs_.bytes(), piece, timestamp_max, list)) << "one does not fit";
    EXPECT_EQ(list.count(), ordered_.size() - 1);
    list.clear();
    EXPECT_TRUE(walk_piece(logs_.bytes(), piece, timestamp_max, list));
    EXPECT_EQ(list.records().front(), ordered_.back());
    EXPECT_EQ(piece.begin, piece.end);
}

}  // namespace
}  // namespace stillpoint::logs
