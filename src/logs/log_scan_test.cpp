// Live transactions are found, whole; void and done ones are left out; and no damage to live ones goes unnoticed.

#include "logs/log_scan.hpp"

#include <gtest/gtest.h>
#include <random>

#include "support/redo_logs.hpp"

namespace stillpoint::logs {
namespace {

class Told : public Findings {
public:
    std::vector<std::string> damages;
    std::vector<std::string> remarks;

protected:
    void tell(const Failure& failure, bool is_damage) override { (is_damage ? damages : remarks).emplace_back(failure.text()); }
};

class LogScan : public ::testing::Test {
protected:
    static test::Payload payload(std::uint64_t value, std::size_t words = 1)
    {
        return test::Payload().words(value % 64, std::vector(words, value));
    }

    RecordRef add(std::uint64_t log, Timestamp timestamp, std::size_t words = 1, std::uint32_t part = 0)
    {
        return logs_.add(log, timestamp, payload(timestamp, words), part);
    }
    Result<LogIndex> scan(Findings* findings = nullptr) { return scan_logs(logs_.bytes(), bounds_, findings); }
    /// All live timestamps, by log.
    static std::vector<std::vector<Timestamp>> timestamps(const LogIndex& index)
    {
        std::vector<std::vector<Timestamp>> all;
        for (const ScannedLog& log : index.logs) {
            std::vector<Timestamp>& of_log = all.emplace_back();
            for (const RecordRef& record : log.records) {
                of_log.push_back(record.timestamp);
            }
        }
        return all;
    }
    using Timestamps = std::vector<std::vector<Timestamp>>;

    void expect_damage(const char* text, Timestamp whole_up_to)
    {
        const auto failed = scan();
        ASSERT_FALSE(failed.has_value());
        EXPECT_EQ(failed.error().code, SP_E_POOL_CORRUPT);
        EXPECT_NE(failed.error().text().find(text), std::string_view::npos) << failed.error().text();
        Told told;
        const auto index = scan(&told);
        ASSERT_TRUE(index.has_value());
        EXPECT_EQ(told.damages.size(), 1U);
        EXPECT_EQ(index->whole_up_to, whole_up_to);
    }

    test::RedoLogs logs_;
    Bounds bounds_{10, 20, 1024, true};
};

TEST_F(LogScan, FindsWhatIsToBeReplayed)
{
    add(0, 9);
    add(1, 10);
    const RecordRef first = add(0, 11);
    add(1, 12, 20);
    add(0, 20);
    add(1, 21);
    add(2, 5);
    const auto index = scan();
    ASSERT_TRUE(index) << index.error().message;
    EXPECT_EQ(timestamps(*index), (Timestamps{{11, 20}, {12}, {}}));
    EXPECT_EQ(index->logs[0].records[0], first);
    EXPECT_EQ(index->newest, 21U);
    EXPECT_EQ(index->newest_use, 3U);
    EXPECT_EQ(index->whole_up_to, 20U);
    EXPECT_EQ(index->live_transactions, 3U);
    EXPECT_EQ(index->done_records, 3U);
    EXPECT_EQ(index->void_records, 1U);
}

TEST_F(LogScan, ATornVoidRecordEndsTheLogAndItsTimestampCounts)
{
    add(0, 20);
    const RecordRef torn = add(0, 22, 8);
    std::memset(logs_.byte_at(torn.position) + cache_line_bytes, 0, cache_line_bytes);
    const auto index = scan();
    ASSERT_TRUE(index) << index.error().message;
    EXPECT_EQ(timestamps(*index), (Timestamps{{20}}));
    EXPECT_EQ(index->newest, 22U);
    EXPECT_EQ(index->void_records, 0U);
}

TEST_F(LogScan, AVoidRecordMayFollowOneOfWhichNothingIsLeft)
{
    add(0, 20);
    const RecordRef lost = add(0, 22);
    add(0, 23);
    std::memset(logs_.byte_at(lost.position), 0, cache_line_bytes);
    const auto index = scan();
    ASSERT_TRUE(index) << index.error().message;
    EXPECT_EQ(timestamps(*index), (Timestamps{{20}}));
    EXPECT_EQ(index->newest, 23U);
}

TEST_F(LogScan, StaleBytesOfAnEarlierUseAreNotRecords)
{
    for (Timestamp timestamp = 11; timestamp < 20; ++timestamp) {
        add(0, timestamp, 3);  // A use that is over: the bytes stay, the headers go.
    }
    logs_.begin_chunk(1, logs_.chunk(0));
    add(1, 20);
    const auto index = scan();
    ASSERT_TRUE(index) << index.error().message;
    EXPECT_EQ(timestamps(*index), (Timestamps{{20}}));
}

TEST_F(LogScan, ALiveRecordThatIsDamagedIsNoticed)
{
    add(0, 11);
    const RecordRef middle = add(0, 13, 8);
    add(0, 15);
    add(1, 20);
    logs_.flip(middle.position + 80, 3);
    expect_damage("log 0 of run 7, chunk 0, offset 128: the record of transaction 13 is damaged", 11);
    std::memset(logs_.byte_at(middle.position), 0, 2 * cache_line_bytes);
    expect_damage("no record can be read before the one of transaction 15", 11);
}

TEST_F(LogScan, TheLastLiveRecordOfALogThatIsDamagedIsNoticed)
{
    add(1, 20);
    add(0, 11);
    const RecordRef last = add(0, 13, 8);
    logs_.flip(last.position + 80, 3);
    expect_damage("the record of transaction 13 is damaged", 11);
}

TEST_F(LogScan, ADoneRecordThatIsDamagedIsPassed)
{
    for (const unsigned lines : {1U, 2U}) {
        logs_ = {};
        add(0, 8);
        const RecordRef damaged = add(0, 9, 8);
        add(0, 10);
        add(0, 20);
        std::memset(logs_.byte_at(damaged.position) + (2 - lines) * cache_line_bytes, 0, lines * cache_line_bytes);
        const auto index = scan();
        ASSERT_TRUE(index) << index.error().message;
        EXPECT_EQ(timestamps(*index), (Timestamps{{20}}));
    }
}

TEST_F(LogScan, AMissingMarkerIsNoticedIfThereWasATransaction)
{
    add(0, 19);
    expect_damage("transaction 20, the newest that was acknowledged, is in none of the 1 logs", 10);
    bounds_.marker_has_record = false;
    EXPECT_TRUE(scan().has_value());
    bounds_ = {20, 20, 1024, true};
    EXPECT_TRUE(scan().has_value());
}

TEST_F(LogScan, AMissingChunkIsNoticedIfItsRecordsAreLive)
{
    add(0, 9);
    const RecordRef lost = (logs_.begin_chunk(0, logs_.add_chunk()), add(0, 12));
    logs_.begin_chunk(0, logs_.add_chunk());
    add(0, 20);
    std::memset(logs_.byte_at(position_of(chunk_of(lost.position), 0)), 0, cache_line_bytes);
    Told told;
    EXPECT_TRUE(scan(&told).has_value()) << "the header's copy serves";
    EXPECT_EQ(told.remarks.size(), 1U);
    std::memset(logs_.byte_at(position_of(chunk_of(lost.position), header_copy_offset)), 0, cache_line_bytes);
    expect_damage("it follows transaction 12, which is missing", 10);
    bounds_.replayed = 12;
    EXPECT_EQ(timestamps(scan().value()), (Timestamps{{20}})) << "the chunk was used again after its records were replayed";
}

TEST_F(LogScan, ATransactionCountsWithAllItsParts)
{
    add(0, 11, 1, 0 | more_parts);
    logs_.begin_chunk(0, logs_.add_chunk());
    add(0, 11, 1, 1 | more_parts);
    add(0, 11, 1, 2);
    add(0, 20);
    add(0, 21, 1, 0 | more_parts);
    const auto index = scan();
    ASSERT_TRUE(index) << index.error().message;
    EXPECT_EQ(timestamps(*index), (Timestamps{{11, 11, 11, 20}}));
    EXPECT_EQ(index->live_transactions, 2U);
}

TEST_F(LogScan, AMissingPartIsNoticed)
{
    add(1, 20);
    add(0, 11, 1, 0 | more_parts);
    expect_damage("later parts of transaction 11 are missing", 10);
    add(0, 13);
    expect_damage("later parts of transaction 11 are missing", 10);
    logs_ = {};
    add(1, 20);
    add(0, 12);
    add(0, 14, 1, 1);
    expect_damage("earlier parts of transaction 14 are missing", 12);
}

TEST_F(LogScan, RecordsOutOfOrderOrOutsideTheImageAreDamage)
{
    add(0, 20);
    add(0, 15);
    expect_damage("the record of transaction 15 is damaged", 14);
    logs_ = {};
    logs_.add(0, 12, test::Payload().words(1024, {1}));
    add(0, 20);
    expect_damage("the record of transaction 12 is damaged", 10);
}

TEST_F(LogScan, TwoChunksWithOneNumberAreDamage)
{
    add(0, 20);
    const std::uint32_t copy = logs_.add_chunk();
    std::memcpy(logs_.byte_at(position_of(copy, 0)), logs_.byte_at(0), chunk_bytes);
    expect_damage("log 0 of run 7: chunks 0 and 1 both claim to be its number 0", 10);
}

TEST_F(LogScan, OfTwoHeadersTheLaterUseIsInForce)
{
    add(0, 9);
    std::byte older[sizeof(ChunkHeader)];
    std::memcpy(older, logs_.byte_at(0), sizeof older);
    logs_.begin_chunk(1, 0);
    add(1, 20);
    for (const std::uint64_t place : {std::uint64_t{0}, header_copy_offset}) {
        std::byte newer[sizeof(ChunkHeader)];
        std::memcpy(newer, logs_.byte_at(place), sizeof newer);
        std::memcpy(logs_.byte_at(place), older, sizeof older);
        EXPECT_EQ(timestamps(scan().value()), (Timestamps{{20}}));
        std::memcpy(logs_.byte_at(place), newer, sizeof newer);
    }
}

TEST_F(LogScan, EverySingleFlippedBitIsNoticedOrHarmless)
{
    add(0, 9);
    add(1, 11, 2);
    add(0, 12, 5);
    add(2, 13, 1, 0 | more_parts);
    logs_.begin_chunk(2, logs_.add_chunk());
    add(2, 13, 2, 1);
    add(1, 15);
    logs_.begin_chunk(0, logs_.add_chunk());
    add(0, 16);
    add(1, 20);
    add(0, 22, 3);
    add(2, 23);
    const auto whole = scan();
    ASSERT_TRUE(whole) << whole.error().message;
    const Timestamps expected = timestamps(*whole);
    std::vector<std::pair<Position, Position>> ranges;
    for (std::uint32_t chunk = 0; chunk < logs_.bytes().count; ++chunk) {
        ranges.emplace_back(position_of(chunk, 0), position_of(chunk, 6 * cache_line_bytes));
        ranges.emplace_back(position_of(chunk, header_copy_offset), position_of(chunk + 1, 0));
    }
    unsigned noticed = 0;
    for (const auto& [begin, end] : ranges) {
        for (Position at = begin; at < end; ++at) {
            for (unsigned bit = 0; bit < 8; ++bit) {
                logs_.flip(at, bit);
                const auto index = scan();
                noticed += index ? 0U : 1U;
                if (index && timestamps(*index) != expected) {
                    ADD_FAILURE() << "chunk " << chunk_of(at) << ", offset " << offset_in_chunk(at) << ", bit " << bit;
                }
                logs_.flip(at, bit);
            }
        }
    }
    EXPECT_GT(noticed, 1000U);
}

TEST_F(LogScan, RandomBytesAreNoLogsAndEndNothing)
{
    std::mt19937_64 random(1);
    for (int round = 0; round < 20; ++round) {
        logs_ = {};
        for (Timestamp timestamp = 5; timestamp < 25; ++timestamp) {
            add(random() % 3, timestamp, random() % 40);
        }
        for (int i = 0; i < 200; ++i) {
            const std::uint64_t value = random();
            std::memcpy(logs_.byte_at(position_of(random() % logs_.bytes().count, random() % 4096 / 8 * 8)), &value, sizeof value);
        }
        Told told;
        EXPECT_TRUE(scan(&told).has_value());
    }
}

}  // namespace
}  // namespace stillpoint::logs
