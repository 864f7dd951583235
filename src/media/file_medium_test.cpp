// The file medium, on each of its ways to the disk. Invariants:
//   - what write() took is what read() gives, however often the system interrupts or cuts it;
//   - a failed write or sync freezes the medium: nothing later can look durable;
//   - neighbouring pages are one system call (golden counts);
//   - a call that only memory can serve ends the process.

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

#include "media/open.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_pages.hpp"

namespace stillpoint {
namespace {

using test::numbered_pages;
using test::page_value;
using test::write_of;

struct Way {
    const char* name;
    bool disable_io_uring;
    bool disable_direct_io;
    Durability durability;
};

class FileMediumTest : public testing::TestWithParam<Way> {
protected:
    std::unique_ptr<Medium> create(std::uint64_t pages, const std::string& faults = {})
    {
        MediumOptions options;
        options.path = directory_.file("pool");
        options.kind = MediumKind::file;
        options.faults = faults;
        options.disable_io_uring = GetParam().disable_io_uring;
        options.disable_direct_io = GetParam().disable_direct_io;
        options.durability = GetParam().durability;
        auto medium = create_medium(options, pages * page_bytes);
        EXPECT_TRUE(medium) << medium.error().message;
        return std::move(*medium);
    }

    [[nodiscard]] std::string path() const { return directory_.file("pool"); }

    test::TemporaryDirectory directory_;
};

void expect_frozen(Medium& medium)
{
    const auto pages = numbered_pages(1);
    const BlockWrite batch[] = {write_of(pages[0], 0)};
    EXPECT_EQ(medium.write(batch).error().code, SP_E_POOL_READ_ONLY);
    EXPECT_EQ(medium.sync().error().code, SP_E_POOL_READ_ONLY);
    EXPECT_EQ(medium.resize(medium.size_bytes() + page_bytes).error().code, SP_E_POOL_READ_ONLY);
}

TEST_P(FileMediumTest, ReadsBackWhatWasWritten)
{
    const auto medium = create(8);
    const auto pages = numbered_pages(3);
    const BlockWrite batch[] = {write_of(pages[0], 0), write_of(pages[1], 3), write_of(pages[2], 7)};
    ASSERT_TRUE(medium->write(batch));
    ASSERT_TRUE(medium->sync());
    EXPECT_EQ(page_value(*medium, 0), 1u);
    EXPECT_EQ(page_value(*medium, 1), 0u);
    EXPECT_EQ(page_value(*medium, 3), 2u);
    EXPECT_EQ(page_value(*medium, 7), 3u);
}

TEST_P(FileMediumTest, TakesAnEmptyBatch)
{
    const auto medium = create(1);
    ASSERT_TRUE(medium->write({}));
    EXPECT_EQ(medium->counters().write_calls, 0u);
}

TEST_P(FileMediumTest, MergesWritesThatAreNeighboursInTheFile)
{
    const auto medium = create(16);
    const auto pages = numbered_pages(6);
    // Backwards in memory, so that every page needs a vector of its own.
    const BlockWrite batch[] = {write_of(pages[5], 0), write_of(pages[4], 1), write_of(pages[3], 2),
                                write_of(pages[2], 8), write_of(pages[1], 9), write_of(pages[0], 15)};
    ASSERT_TRUE(medium->write(batch));
    EXPECT_EQ(medium->counters().write_calls, 3u);
    EXPECT_EQ(medium->counters().bytes_written, 6 * page_bytes);
    EXPECT_EQ(page_value(*medium, 0), 6u);
    EXPECT_EQ(page_value(*medium, 1), 5u);
    EXPECT_EQ(page_value(*medium, 2), 4u);
    EXPECT_EQ(page_value(*medium, 8), 3u);
    EXPECT_EQ(page_value(*medium, 9), 2u);
    EXPECT_EQ(page_value(*medium, 15), 1u);
}

TEST_P(FileMediumTest, CutsAWriteOfThreeMebibytesAndAPageIntoFour)
{
    constexpr std::size_t count = 3 * 256 + 1;
    const auto medium = create(count);
    const auto pages = numbered_pages(count);
    const BlockWrite batch[] = {{0, pages[0].bytes, count * page_bytes}};
    ASSERT_TRUE(medium->write(batch));
    EXPECT_EQ(medium->counters().write_calls, 4u);
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(page_value(*medium, i), (i + 1) % 256);
    }
}

TEST_P(FileMediumTest, WritesMoreRunsThanTheQueueIsDeep)
{
    constexpr std::size_t count = 200;
    const auto medium = create(2 * count);
    const auto pages = numbered_pages(count);
    std::vector<BlockWrite> batch;
    for (std::size_t i = 0; i < count; ++i) {
        batch.push_back(write_of(pages[i], 2 * i));
    }
    ASSERT_TRUE(medium->write(batch));
    ASSERT_TRUE(medium->write(batch));
    EXPECT_EQ(medium->counters().write_calls, 2 * count);
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(page_value(*medium, 2 * i), i + 1);
        ASSERT_EQ(page_value(*medium, 2 * i + 1), 0u);
    }
}

TEST_P(FileMediumTest, FinishesWritesThatTheSystemCutsShort)
{
    const auto medium = create(16, "write:short@1,write:short@2,write:short@5");
    const auto pages = numbered_pages(4);
    const BlockWrite batch[] = {write_of(pages[3], 0), write_of(pages[1], 1), write_of(pages[2], 6), write_of(pages[0], 9)};
    ASSERT_TRUE(medium->write(batch));
    EXPECT_EQ(medium->counters().bytes_written, 4 * page_bytes);
    EXPECT_EQ(page_value(*medium, 0), 4u);
    EXPECT_EQ(page_value(*medium, 1), 2u);
    EXPECT_EQ(page_value(*medium, 6), 3u);
    EXPECT_EQ(page_value(*medium, 9), 1u);
}

TEST_P(FileMediumTest, TriesAgainWhenInterruptedOrToldToWait)
{
    const auto medium = create(16, "write:EINTR@1,write:EAGAIN@2,write:EINTR@4");
    const auto pages = numbered_pages(2);
    const BlockWrite batch[] = {write_of(pages[0], 2), write_of(pages[1], 4)};
    ASSERT_TRUE(medium->write(batch));
    EXPECT_EQ(page_value(*medium, 2), 1u);
    EXPECT_EQ(page_value(*medium, 4), 2u);
}

TEST_P(FileMediumTest, GivesUpOnAFileThatStaysBusy)
{
    const auto medium = create(4, "write:EAGAIN@1:always");
    const auto pages = numbered_pages(2);
    const BlockWrite batch[] = {write_of(pages[0], 0), write_of(pages[1], 2)};
    EXPECT_EQ(medium->write(batch).error().code, SP_E_IO);
}

TEST_P(FileMediumTest, NamesFileAndOffsetOfAFailedWriteAndFreezes)
{
    const auto medium = create(16, "write:EIO@2");
    const auto pages = numbered_pages(3);
    const BlockWrite batch[] = {write_of(pages[0], 0), write_of(pages[1], 5), write_of(pages[2], 9)};
    const auto written = medium->write(batch);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, SP_E_IO);
    EXPECT_EQ(written.error().os_error, EIO);
    EXPECT_NE(written.error().text().find(path()), std::string::npos);
    EXPECT_NE(written.error().text().find("offset 20480"), std::string::npos);
    expect_frozen(*medium);
}

TEST_P(FileMediumTest, ReportsAFullDiskAsNoSpace)
{
    const auto medium = create(4, "write:ENOSPC@1");
    const auto pages = numbered_pages(2);
    const BlockWrite batch[] = {write_of(pages[0], 0), write_of(pages[1], 2)};
    EXPECT_EQ(medium->write(batch).error().code, SP_E_NO_SPACE);
    expect_frozen(*medium);
}

TEST_P(FileMediumTest, RefusesWritesThatAreNotWholePagesInsideTheFile)
{
    const auto medium = create(4);
    const auto pages = numbered_pages(2);
    const BlockWrite bad[] = {{4 * page_bytes, pages[0].bytes, page_bytes},
                              {3 * page_bytes, pages[0].bytes, 2 * page_bytes},
                              {1, pages[0].bytes, page_bytes},
                              {0, pages[0].bytes, 100},
                              {~std::uint64_t{0} - page_bytes + 1, pages[0].bytes, page_bytes}};
    for (const BlockWrite& write : bad) {
        EXPECT_EQ(medium->write({&write, 1}).error().code, SP_E_INVALID_ARGUMENT);
    }
    EXPECT_EQ(medium->counters().write_calls, 0u);
    EXPECT_TRUE(medium->sync()) << "a refused batch must not freeze";
}

TEST_P(FileMediumTest, GrowsWithZeroesAndKeepsWhatWasThere)
{
    const auto medium = create(4);
    const auto pages = numbered_pages(1);
    const BlockWrite first[] = {write_of(pages[0], 3)};
    ASSERT_TRUE(medium->write(first));
    ASSERT_TRUE(medium->resize(40 * page_bytes));
    EXPECT_EQ(medium->size_bytes(), 40 * page_bytes);
    EXPECT_EQ(page_value(*medium, 3), 1u);
    EXPECT_EQ(page_value(*medium, 39), 0u);
    const BlockWrite second[] = {write_of(pages[0], 39)};
    ASSERT_TRUE(medium->write(second));
    EXPECT_EQ(page_value(*medium, 39), 1u);
}

TEST_P(FileMediumTest, IsReadByOtherThreadsWhileOneWritesElsewhere)
{
    const auto medium = create(64);
    const auto pages = numbered_pages(2);
    const BlockWrite fixed[] = {write_of(pages[0], 0)};
    ASSERT_TRUE(medium->write(fixed));
    std::atomic<bool> wrong{false};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) {
        readers.emplace_back([&] {
            for (int round = 0; round < 50; ++round) {
                wrong = wrong || page_value(*medium, 0) != 1;
            }
        });
    }
    for (std::uint64_t page = 2; page < 60; page += 2) {
        const BlockWrite batch[] = {write_of(pages[1], page), write_of(pages[1], page + 2)};
        EXPECT_TRUE(medium->write(batch));
    }
    for (auto& reader : readers) {
        reader.join();
    }
    EXPECT_FALSE(wrong);
}

INSTANTIATE_TEST_SUITE_P(Ways, FileMediumTest,
                         testing::Values(Way{"RingAndDirect", false, false, Durability::power},
                                         Way{"RingAndPageCache", false, true, Durability::power},
                                         Way{"Pwritev", true, false, Durability::power}, Way{"Process", false, false, Durability::process}),
                         [](const auto& way) { return std::string{way.param.name}; });

class FileMediumFaultTest : public testing::Test {
protected:
    std::unique_ptr<Medium> create(const std::string& faults, Durability durability = Durability::power, FileRange without_room = {})
    {
        MediumOptions options;
        options.path = directory_.file("pool");
        options.kind = MediumKind::file;
        options.faults = faults;
        options.durability = durability;
        options.without_room = {without_room, FileRange{}};
        auto medium = create_medium(options, 4 * page_bytes);
        EXPECT_TRUE(medium) << medium.error().message;
        return std::move(*medium);
    }

    [[nodiscard]] struct stat facts() const
    {
        struct stat facts{};
        EXPECT_EQ(stat(directory_.file("pool").c_str(), &facts), 0);
        return facts;
    }
    [[nodiscard]] off_t size_on_disk() const { return facts().st_size; }

    test::TemporaryDirectory directory_;
};

TEST_F(FileMediumFaultTest, TakesRoomForBytesThatWereLeftWithoutWhenAsked)
{
    const FileRange without_room{page_bytes, 3 * page_bytes};
    const auto medium = create({}, Durability::power, without_room);
    EXPECT_EQ(size_on_disk(), off_t{4 * page_bytes});
    const auto blocks_before = facts().st_blocks;
    ASSERT_TRUE(medium->allocate(without_room));
    EXPECT_EQ((facts().st_blocks - blocks_before) * 512, off_t{2 * page_bytes});
    const auto pages = numbered_pages(1);
    const BlockWrite write = write_of(pages[0], 2);
    ASSERT_TRUE(medium->write({&write, 1}));
    ASSERT_TRUE(medium->allocate(without_room));
    EXPECT_EQ(page_value(*medium, 2), 1u) << "an earlier run may have written there";
}

TEST_F(FileMediumFaultTest, LeavesNothingForLaterWhereTheFileSystemCannotAllocate)
{
    const FileRange without_room{page_bytes, 3 * page_bytes};
    const auto medium = create("fallocate:EOPNOTSUPP@1:always", Durability::power, without_room);
    EXPECT_EQ(facts().st_blocks * 512, off_t{4 * page_bytes});
    const auto pages = numbered_pages(1);
    const BlockWrite write = write_of(pages[0], 2);
    ASSERT_TRUE(medium->write({&write, 1}));
    ASSERT_TRUE(medium->allocate(without_room));
    EXPECT_EQ(page_value(*medium, 2), 1u);
}

TEST_F(FileMediumFaultTest, NamesTheFileOfAFailedSyncAndFreezes)
{
    const auto medium = create("sync:EIO@2");
    ASSERT_TRUE(medium->sync());
    const auto synced = medium->sync();
    ASSERT_FALSE(synced);
    EXPECT_EQ(synced.error().code, SP_E_IO);
    EXPECT_EQ(synced.error().os_error, EIO);
    EXPECT_NE(synced.error().text().find(directory_.file("pool")), std::string::npos);
    expect_frozen(*medium);
    EXPECT_EQ(medium->counters().syncs, 1u);
}

TEST_F(FileMediumFaultTest, NeverRepeatsAnInterruptedSync)
{
    const auto medium = create("sync:EINTR@1");
    EXPECT_EQ(medium->sync().error().code, SP_E_IO);
    expect_frozen(*medium);
}

TEST_F(FileMediumFaultTest, MakesNoSystemCallToSyncUnderDurabilityProcess)
{
    const auto medium = create("sync:EIO@1", Durability::process);
    EXPECT_TRUE(medium->sync());
    EXPECT_EQ(medium->counters().syncs, 0u);
    medium->set_durability(Durability::power);
    EXPECT_EQ(medium->sync().error().code, SP_E_IO);
}

TEST_F(FileMediumFaultTest, ChangesNothingWhenTheDiskIsTooFullToGrow)
{
    const auto medium = create("fallocate:ENOSPC@2");
    const auto grown = medium->resize(64 * page_bytes);
    ASSERT_FALSE(grown);
    EXPECT_EQ(grown.error().code, SP_E_NO_SPACE);
    EXPECT_EQ(medium->size_bytes(), 4 * page_bytes);
    EXPECT_EQ(size_on_disk(), off_t{4 * page_bytes});
    EXPECT_TRUE(medium->resize(8 * page_bytes)) << "a later attempt may find space";
}

TEST_F(FileMediumFaultTest, WritesZeroesWhereTheFileSystemCannotAllocate)
{
    const auto medium = create("fallocate:EOPNOTSUPP@1:always,write:short@1");
    EXPECT_EQ(size_on_disk(), off_t{4 * page_bytes});
    ASSERT_TRUE(medium->resize(64 * page_bytes));
    EXPECT_EQ(size_on_disk(), off_t{64 * page_bytes});
    EXPECT_EQ(page_value(*medium, 63), 0u);
}

TEST_F(FileMediumFaultTest, GivesTheSpaceBackWhenZeroFillingFindsTheDiskFull)
{
    const auto medium = create("fallocate:EOPNOTSUPP@2,write:ENOSPC@2");
    EXPECT_EQ(medium->resize(64 * page_bytes).error().code, SP_E_NO_SPACE);
    EXPECT_EQ(size_on_disk(), off_t{4 * page_bytes});
}

TEST_F(FileMediumFaultTest, FreezesWhenTheSyncOfItsGrowthFails)
{
    const auto medium = create("sync:EIO@1");
    EXPECT_EQ(medium->resize(8 * page_bytes).error().code, SP_E_IO);
    expect_frozen(*medium);
}

TEST_F(FileMediumFaultTest, RefusesToShrinkAndToGrowByPartsOfPages)
{
    const auto medium = create({});
    EXPECT_EQ(medium->resize(page_bytes).error().code, SP_E_INVALID_ARGUMENT);
    EXPECT_EQ(medium->resize(5 * page_bytes + 1).error().code, SP_E_INVALID_ARGUMENT);
}

TEST_F(FileMediumFaultTest, ReadsAcrossShortAndInterruptedCalls)
{
    const auto medium = create("read:short@1,read:EINTR@2,read:short@3");
    const auto pages = numbered_pages(4);
    const BlockWrite batch[] = {{0, pages[0].bytes, 4 * page_bytes}};
    ASSERT_TRUE(medium->write(batch));
    EXPECT_EQ(page_value(*medium, 2), 3u);
    EXPECT_EQ(page_value(*medium, 3), 4u);
}

TEST_F(FileMediumFaultTest, NamesTheOffsetOfAFailedRead)
{
    const auto medium = create("read:EIO@1");
    std::byte bytes[16];
    const auto read = medium->read(4096, bytes);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, SP_E_IO);
    EXPECT_NE(read.error().text().find("offset 4096"), std::string::npos);
}

TEST_F(FileMediumFaultTest, TellsAReadBehindTheEndAsTruncation)
{
    const auto medium = create({});
    std::byte bytes[16];
    EXPECT_EQ(medium->read(4 * page_bytes - 8, bytes).error().code, SP_E_POOL_TRUNCATED);
}

TEST_F(FileMediumFaultTest, EndsTheProcessWhenItIsUsedAsMemory)
{
    const auto medium = create({});
    EXPECT_FALSE(medium->byte_addressable());
    EXPECT_EQ(medium->mapping(), nullptr);
    EXPECT_DEATH(medium->store(0, "x", 1), "pool, which is written by blocks");
    EXPECT_DEATH(medium->store_nontemporal(0, "x", 1), "as byte-addressable memory");
    EXPECT_DEATH(medium->write_back(0, 1), "as byte-addressable memory");
    EXPECT_DEATH(medium->fence(), "as byte-addressable memory");
}

}  // namespace
}  // namespace stillpoint
