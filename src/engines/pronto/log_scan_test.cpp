// The operations that are taken from a log that a crash, an earlier recovery or damage has left.

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "engines/pronto/entry_codec.hpp"
#include "engines/pronto/log_scan.hpp"
#include "support/fake_medium.hpp"

namespace stillpoint::pronto {
namespace {

constexpr std::uint64_t object = 0x1'0000'0001;
constexpr EngineFormat format{"pronto",
                              layout_version,
                              engine_area_pages,
                              &LogPart::segment_file_pages,
                              1,
                              &LogPart::pages_without_room,
                              &LogPart::first_segment_file_pages};

/// A pool on a fake disk, and a hand that writes its log.
class LogScan : public ::testing::Test {
protected:
    LogScan()
    {
        const Pool::CreateOptions options{format, 4 * mib, 64 * mib};
        disk_ = std::make_shared<stillpoint::testing::FakeDisk>(Pool::file_bytes_for(options).value());
        pool_.emplace(Pool::create(stillpoint::testing::attach(disk_), options).value());
    }

    void begin_chunk(std::uint64_t sequence, std::uint64_t generation = 1, std::uint64_t first_number = 1)
    {
        header_ = {};
        std::memcpy(header_.magic, chunk_magic, sizeof header_.magic);
        header_.object = object;
        header_.sequence = sequence;
        header_.generation = generation;
        header_.first_number = first_number;
        header_.checksum = chunk_checksum(header_);
        chunk_ = disk_bytes() + (LogPart::first_page(pool_->segments()[0]) + chunks_++ * log_chunk_pages) * page_bytes;
        std::memcpy(chunk_, &header_, sizeof header_);
        used_ = sizeof header_;
    }
    /// The entry's place, for damage.
    std::byte* add(std::uint64_t number, std::uint8_t flags, std::uint64_t durable, std::size_t bytes = 8, std::uint32_t part = 0)
    {
        const std::vector<std::byte> arguments(bytes, std::byte{static_cast<std::uint8_t>(number)});
        const std::uint64_t key = log_key_of(header_.object, header_.generation);
        const std::uint64_t place = place_of(header_.sequence, used_);
        EntryHeader entry{};
        entry.number = number;
        entry.argument_bytes = static_cast<std::uint32_t>(bytes);
        entry.tag = entry_tag(key, place);
        entry.method = 3;
        entry.flags = flags;
        entry.behind = behind_of(number, durable);
        entry.part = part;
        entry.checksum = entry_checksum(entry, arguments_hash(arguments.data(), bytes, key, place));
        std::byte* const at = chunk_ + used_;
        std::memcpy(at, &entry, sizeof entry);
        std::memcpy(at + sizeof entry, arguments.data(), bytes);
        used_ += entry_bytes_for(bytes);
        return at;
    }
    std::vector<std::uint64_t> numbers(std::uint64_t committed = 0, std::uint64_t log_sequence = 0)
    {
        ObjectRecord record{};
        record.committed = committed;
        record.log_sequence = log_sequence;
        const auto chunks = scan_chunks(*pool_);
        EXPECT_TRUE(chunks);
        log_.emplace(ScannedLog::read(*pool_, *chunks, record).value());
        std::vector<std::uint64_t> found;
        for (const LoggedOperation& operation : log_->operations()) {
            found.push_back(operation.number);
        }
        return found;
    }
    using Numbers = std::vector<std::uint64_t>;

    std::optional<Pool> pool_;
    std::optional<ScannedLog> log_;

    std::byte* disk_bytes() { return disk_->cached.data(); }

    std::shared_ptr<stillpoint::testing::FakeDisk> disk_;
    ChunkHeader header_{};
    std::byte* chunk_ = nullptr;
    std::uint64_t chunks_ = 0;
    std::uint64_t used_ = 0;
};

TEST_F(LogScan, StepsOverWhatWasNeverCommittedAndSortsByNumber)
{
    begin_chunk(0);
    add(2, 0, 0);
    std::byte* const rolled_out = add(9, 0, 0, 500);
    std::memset(rolled_out, 0, cache_line_bytes);
    add(1, 0, 0, 100);
    begin_chunk(1);
    add(3, 0, 2);
    EXPECT_EQ(numbers(), (Numbers{1, 2, 3}));
    EXPECT_EQ(numbers(2), (Numbers{3}));
    EXPECT_EQ(log_->damaged_number(), 0U);
}

TEST_F(LogScan, LeavesOutChunksThatASnapshotHasSuperseded)
{
    begin_chunk(4, 0);
    add(7, 0, 5);  // A recovery has left it out: number 6 was missing.
    begin_chunk(5, 1, 6);
    add(6, entry_follows_all, 5);
    EXPECT_EQ(numbers(6, 6), Numbers{});
    EXPECT_EQ(numbers(5, 5), (Numbers{6}));
}

TEST_F(LogScan, LeavesOutWhatAnEarlierRecoveryHasLeftOut)
{
    begin_chunk(0, 0);
    add(1, entry_follows_all, 0);
    add(3, entry_follows_all, 1);
    EXPECT_EQ(numbers(), (Numbers{1}));
    EXPECT_EQ(log_->left_out(), 1U);
    begin_chunk(1, 1, 2);
    add(2, entry_follows_all, 1);
    EXPECT_EQ(numbers(), (Numbers{1, 2})) << "number 3 is of a run that never told it";
}

TEST_F(LogScan, EndsAtAGapWhereLaterOnesFollowAllAndNotWhereTheyDoNot)
{
    begin_chunk(0);
    add(1, 0, 0);
    add(3, 0, 1);
    EXPECT_EQ(numbers(), (Numbers{1, 3}));
    EXPECT_TRUE(log_->has_gap());
    add(4, entry_follows_all, 1);
    EXPECT_EQ(numbers(), (Numbers{1, 3, 4}));
    add(6, entry_follows_all, 1);
    add(7, 0, 1);
    EXPECT_EQ(numbers(), (Numbers{1, 3, 4}));
}

TEST_F(LogScan, LeavesOutOfAGroupWhatHasLostTheOneBeforeIt)
{
    begin_chunk(0);
    add(1, 0, 0);
    std::byte* const second = add(2, entry_follows_previous, 1);
    add(3, entry_follows_previous, 1);
    add(4, 0, 1);
    add(5, entry_follows_previous, 1);
    EXPECT_EQ(numbers(), (Numbers{1, 2, 3, 4, 5}));
    second[0] ^= std::byte{1};
    EXPECT_EQ(numbers(), (Numbers{1, 4, 5})) << "another thread's operation relies on durable ones only";
    EXPECT_EQ(log_->left_out(), 1U);
    EXPECT_EQ(log_->damaged_number(), 0U) << "nothing says that 2 was durable";
    EXPECT_EQ(numbers(2), (Numbers{3, 4, 5})) << "the snapshot has what number 3 relies on";
    add(6, 0, 3);
    EXPECT_EQ(numbers(), (Numbers{1, 4, 5, 6}));
    EXPECT_EQ(log_->damaged_number(), 2U);
}

TEST_F(LogScan, TellsDamageFromATornEnd)
{
    begin_chunk(0);
    add(1, entry_follows_all, 0);
    std::byte* const second = add(2, entry_follows_all, 1, 300);
    add(3, entry_follows_all, 1);
    second[200] ^= std::byte{1};
    EXPECT_EQ(numbers(), (Numbers{1}));
    EXPECT_EQ(log_->damaged_number(), 0U) << "nothing says that 2 was durable";
    add(4, entry_follows_all, 3);
    EXPECT_EQ(numbers(), (Numbers{1}));
    EXPECT_EQ(log_->damaged_number(), 2U);
    EXPECT_EQ(log_->damaged_method(), 3);
    log_->cut_at_damage();
    EXPECT_EQ(log_->operations().size(), 1U);
}

TEST_F(LogScan, PutsPartsTogetherOrLeavesThemOut)
{
    begin_chunk(0);
    add(1, entry_has_more, 0, 1000, 0);
    begin_chunk(1);
    add(1, entry_has_more, 0, 1000, 1);
    EXPECT_EQ(numbers(), Numbers{});
    begin_chunk(2);
    add(1, 0, 0, 10, 2);
    EXPECT_EQ(numbers(), (Numbers{1}));
    EXPECT_EQ(log_->operations()[0].arguments.size(), 2010U);
}

TEST_F(LogScan, RefusesTwoEntriesWithOneNumber)
{
    begin_chunk(0);
    add(1, 0, 0);
    add(1, 0, 0);
    const auto chunks = scan_chunks(*pool_);
    const auto log = ScannedLog::read(*pool_, *chunks, ObjectRecord{});
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().code, SP_E_POOL_CORRUPT);
}

TEST_F(LogScan, TakesTheOtherHeaderWhereOneCannotBeRead)
{
    begin_chunk(0);
    std::memcpy(chunk_ + header_copy_offset, &header_, sizeof header_);
    const std::uint64_t first_page = LogPart::first_page(pool_->segments()[0]);
    for (const std::uint64_t page : {first_page, first_page + log_chunk_pages - 1, first_page + log_chunk_pages}) {
        disk_->unreadable_page = page;  // The chunk's page, or one of the chunk after it, which is not used.
        const auto chunks = scan_chunks(*pool_);
        ASSERT_TRUE(chunks) << "page " << page;
        EXPECT_EQ(chunks->size(), 1U);
    }
}

}  // namespace
}  // namespace stillpoint::pronto
