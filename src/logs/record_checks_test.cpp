// A record is valid only as a whole, at its place, in the use of the chunk that wrote it, and with runs that lie in the image.

#include "logs/record_checks.hpp"

#include <gtest/gtest.h>

#include "support/redo_logs.hpp"

namespace stillpoint::logs {
namespace {

constexpr std::uint64_t image_words = 4 * page_bytes / 8;

class RecordChecks : public ::testing::Test {
protected:
    RecordRef add(const test::Payload& payload) { return logs_.add(0, ++timestamp_, payload); }
    CheckedRecord check(const RecordRef& record, std::uint64_t use = 1, Effort effort = Effort::find_whole)
    {
        return check_record(logs_.bytes().chunks[chunk_of(record.position)], use, offset_in_chunk(record.position), image_words, effort);
    }
    bool has_valid_runs(const test::Payload& payload) { return runs_are_valid(payload.data().data(), payload.data().size(), image_words); }

    test::RedoLogs logs_;
    Timestamp timestamp_ = 40;
};

TEST_F(RecordChecks, AWrittenRecordIsValid)
{
    add(test::Payload().words(3, {1, 2, 3}));
    const RecordRef record = add(test::Payload().words(9, {5}).zeroes(512, 512).bytes(7, 0x81, 4));
    const CheckedRecord checked = check(record);
    EXPECT_EQ(checked.state, RecordState::valid);
    EXPECT_EQ(checked.timestamp, 42U);
    EXPECT_EQ(checked.words, 5U);
}

TEST_F(RecordChecks, AnEmptyRecordAndTheLargestOneAreValid)
{
    EXPECT_EQ(check(add(test::Payload())).state, RecordState::valid);
    test::Payload large;
    while (large.data().size() + 2 <= record_words_max) {
        large.words(large.data().size() % image_words, {1});
    }
    EXPECT_EQ(check(add(large), 2).state, RecordState::valid);
}

TEST_F(RecordChecks, ARecordOfAnotherUseOrPlaceIsAbsent)
{
    const RecordRef record = add(test::Payload().words(3, {1}));
    EXPECT_EQ(check(record, 2).state, RecordState::absent);
    const RecordRef copy{record.timestamp, record.position + 2 * cache_line_bytes};
    std::memcpy(logs_.byte_at(copy.position), logs_.byte_at(record.position), cache_line_bytes);
    EXPECT_EQ(check(copy).state, RecordState::absent);
    EXPECT_EQ(check(copy, 1, Effort::find_flipped).state, RecordState::absent);
}

TEST_F(RecordChecks, ATornPayloadLeavesTheTimestamp)
{
    const RecordRef record = add(test::Payload().words(3, {1, 2, 3, 4, 5, 6, 7, 8}));
    std::memset(logs_.byte_at(record.position) + cache_line_bytes, 0, cache_line_bytes);
    const CheckedRecord checked = check(record);
    EXPECT_EQ(checked.state, RecordState::broken);
    EXPECT_EQ(checked.timestamp, record.timestamp);
}

TEST_F(RecordChecks, EveryFlippedBitIsNoticedAndTheTimestampIsStillKnown)
{
    const RecordRef record = add(test::Payload().words(3, {1, 2, 3}));
    for (unsigned bit = 0; bit < sizeof(RecordHeader) * 8 + 4 * 64; ++bit) {
        logs_.flip(record.position, bit);
        const CheckedRecord checked = check(record, 1, Effort::find_flipped);
        const bool is_link = bit / 64 == offsetof(RecordHeader, link) / 8;
        EXPECT_EQ(checked.state == RecordState::valid, is_link) << bit;
        EXPECT_EQ(checked.timestamp, record.timestamp) << bit;
        logs_.flip(record.position, bit);
    }
}

TEST_F(RecordChecks, RunsLieInOnePageOfTheImage)
{
    EXPECT_TRUE(
        has_valid_runs(test::Payload().words(511, {1}).words(512, {1}).zeroes(image_words - 512, 512).bytes(image_words - 1, 255, 1)));
    EXPECT_FALSE(has_valid_runs(test::Payload().words(511, {1, 2})));
    EXPECT_FALSE(has_valid_runs(test::Payload().zeroes(1, 512)));
    EXPECT_FALSE(has_valid_runs(test::Payload().words(image_words, {1})));
    EXPECT_FALSE(has_valid_runs(test::Payload().bytes(image_words, 1, 1)));
    EXPECT_FALSE(has_valid_runs(test::Payload().bytes(3, 0, 1)));
    EXPECT_FALSE(has_valid_runs(test::Payload().zeroes(3, 0)));
    std::uint64_t run = encode_run({RunKind::words, 1, 3});
    EXPECT_FALSE(runs_are_valid(&run, 1, image_words)) << "its word is missing";
    run = 0;
    EXPECT_FALSE(runs_are_valid(&run, 1, image_words)) << "no kind";
    run = encode_run({RunKind::bytes, 256, 3});
    EXPECT_FALSE(runs_are_valid(&run, 1, image_words)) << "more than a byte of mask";
}

}  // namespace
}  // namespace stillpoint::logs
