// The byte-addressable media, on emulated memory (what they share is in one class). Invariants:
//   - write backs and fences are counted exactly (golden counts), and none is made where none
//     is needed;
//   - the mapping's address never changes, and never lies in the window of durable addresses.

#include <cerrno>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/native.hpp"
#include "media/open.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_pages.hpp"
#include "os/clock.hpp"

namespace stillpoint {
namespace {

class MappedMediumTest : public testing::Test {
protected:
    MappedMediumTest()
    {
        options_.path = directory_.file("pool");
        options_.kind = MediumKind::memory;
        options_.caches_are_persistent = false;
    }

    std::unique_ptr<Medium> create()
    {
        auto medium = create_medium(options_, 16 * page_bytes);
        EXPECT_TRUE(medium) << medium.error().message;
        return std::move(*medium);
    }

    test::TemporaryDirectory directory_;
    MediumOptions options_;
};

TEST_F(MappedMediumTest, ShowsStoresInItsMappingAndInTheFile)
{
    const auto medium = create();
    ASSERT_TRUE(medium->byte_addressable());
    const char text[] = "consistent";
    medium->store(100, text, sizeof text);
    medium->write_back(100, sizeof text);
    medium->fence();
    EXPECT_STREQ(reinterpret_cast<const char*>(medium->mapping() + 100), text);
    char read[sizeof text] = {};
    ASSERT_TRUE(medium->read(100, std::as_writable_bytes(std::span{read})));
    EXPECT_STREQ(read, text);
}

TEST_F(MappedMediumTest, StoresWordsOfEverySizeAtEveryAlignment)
{
    const auto medium = create();
    const std::uint64_t value = 0x1122334455667788u;
    for (std::size_t size = 1; size <= 8; ++size) {
        for (std::uint64_t offset = 64; offset < 72; ++offset) {
            const std::uint64_t zero[2] = {};
            medium->store(64, zero, sizeof zero);
            medium->store(offset, &value, size);
            EXPECT_EQ(std::memcmp(medium->mapping() + offset, &value, size), 0);
            EXPECT_EQ(medium->mapping()[offset + size], std::byte{});
        }
    }
}

TEST_F(MappedMediumTest, CountsEveryLineThatARangeOverlaps)
{
    const auto medium = create();
    medium->write_back(0, 64);
    EXPECT_EQ(medium->counters().lines_written_back, 1u);
    medium->write_back(60, 8);
    EXPECT_EQ(medium->counters().lines_written_back, 3u);
    medium->write_back(page_bytes, page_bytes);
    EXPECT_EQ(medium->counters().lines_written_back, 67u);
    medium->write_back(5, 0);
    EXPECT_EQ(medium->counters().lines_written_back, 67u);
    EXPECT_EQ(medium->counters().bytes_written, 67 * cache_line_bytes);
    EXPECT_EQ(medium->counters().fences, 0u);
    medium->fence();
    EXPECT_EQ(medium->counters().fences, 1u);
}

TEST_F(MappedMediumTest, WritesABatchPastTheCachesWithOneFence)
{
    const auto medium = create();
    const auto pages = test::numbered_pages(3);
    const BlockWrite batch[] = {test::write_of(pages[0], 0), test::write_of(pages[1], 5), test::write_of(pages[2], 15)};
    ASSERT_TRUE(medium->write(batch));
    const MediumCounters counters = medium->counters();
    EXPECT_EQ(counters.fences, 1u);
    EXPECT_EQ(counters.lines_written_back, 0u);
    EXPECT_EQ(counters.bytes_written, 3 * page_bytes);
    EXPECT_EQ(counters.write_calls, 3u);
    EXPECT_EQ(test::page_value(*medium, 5), 2u);
    EXPECT_EQ(medium->mapping()[15 * page_bytes], std::byte{3});
}

TEST_F(MappedMediumTest, WritesNothingBackUnderDurabilityProcess)
{
    const auto medium = create();
    medium->set_durability(Durability::process);
    medium->write_back(0, page_bytes);
    EXPECT_EQ(medium->counters().lines_written_back, 0u);
    EXPECT_NE(medium->mechanism().find("durability process"), std::string_view::npos);
    const std::uint64_t before = medium->counters().bytes_written;
    const std::uint64_t words[3] = {1, 2, 3};
    medium->store(0, words, sizeof words);
    EXPECT_EQ(medium->counters().bytes_written, before + sizeof words);
    medium->set_durability(Durability::power);
    medium->write_back(0, page_bytes);
    EXPECT_EQ(medium->counters().lines_written_back, 64u);
}

TEST_F(MappedMediumTest, WritesNothingBackWhereCachesArePersistent)
{
    options_.caches_are_persistent = true;
    const auto medium = create();
    medium->write_back(0, page_bytes);
    EXPECT_EQ(medium->counters().lines_written_back, 0u);
    EXPECT_NE(medium->mechanism().find("persistent caches"), std::string_view::npos);
}

TEST_F(MappedMediumTest, NamesItsInstruction)
{
    const auto medium = create();
    const auto name = arch::Native::detect().write_back_name();
    EXPECT_NE(medium->mechanism().find(name), std::string_view::npos);
}

TEST_F(MappedMediumTest, GrowsWithoutMovingItsMapping)
{
    const auto medium = create();
    const std::byte* const before = medium->mapping();
    const auto address = reinterpret_cast<std::uintptr_t>(before);
    EXPECT_TRUE(address + medium->size_bytes() <= window_base || address >= window_base + window_bytes);
    const std::uint64_t word = 42;
    medium->store(8, &word, sizeof word);
    ASSERT_TRUE(medium->resize(1024 * page_bytes));
    EXPECT_EQ(medium->mapping(), before);
    EXPECT_EQ(medium->size_bytes(), 1024 * page_bytes);
    medium->store(1023 * page_bytes, &word, sizeof word);
    EXPECT_EQ(medium->mapping()[8], std::byte{42});
    EXPECT_EQ(medium->mapping()[1023 * page_bytes], std::byte{42});
}

TEST_F(MappedMediumTest, GrowsWithRoomForItsFirstPagesAlone)
{
    const auto medium = create();
    const auto blocks = [&] {
        struct stat facts{};
        EXPECT_EQ(stat(options_.path.c_str(), &facts), 0);
        return static_cast<std::uint64_t>(facts.st_blocks) * 512;
    };
    const std::uint64_t before = blocks();
    ASSERT_TRUE(medium->resize_with_room(1024 * page_bytes, 32 * page_bytes));
    EXPECT_EQ(medium->size_bytes(), 1024 * page_bytes);
    EXPECT_LT(blocks(), before + 64 * page_bytes);
    ASSERT_TRUE(medium->allocate({512 * page_bytes, 1024 * page_bytes}));
    EXPECT_GE(blocks(), 512 * page_bytes);
    const std::uint64_t word = 42;
    medium->store(1000 * page_bytes, &word, sizeof word);
    medium->release({512 * page_bytes, 1024 * page_bytes});
    EXPECT_LT(blocks(), before + 64 * page_bytes);
    EXPECT_EQ(medium->mapping()[1000 * page_bytes], std::byte{0});
    ASSERT_TRUE(medium->resize_with_room(1056 * page_bytes, 1025 * page_bytes));
    medium->store(1024 * page_bytes, &word, sizeof word);
    EXPECT_EQ(medium->mapping()[1024 * page_bytes], std::byte{42});
}

TEST_F(MappedMediumTest, ChangesNothingWhenTheDiskIsTooFullToGrow)
{
    options_.faults = "fallocate:ENOSPC@2";
    const auto medium = create();
    EXPECT_EQ(medium->resize(32 * page_bytes).error().code, SP_E_NO_SPACE);
    EXPECT_EQ(medium->size_bytes(), 16 * page_bytes);
}

TEST_F(MappedMediumTest, FreezesAfterAFailedWriteOrSync)
{
    for (const char* const faults : {"write:EIO@1", "sync:EIO@1"}) {
        options_.faults = faults;
        const auto medium = create();
        const auto pages = test::numbered_pages(1);
        const BlockWrite batch[] = {test::write_of(pages[0], 1)};
        const auto written = medium->write(batch);
        const auto synced = medium->sync();
        EXPECT_EQ(written ? synced.error().code : written.error().code, SP_E_IO);
        EXPECT_EQ(medium->write(batch).error().code, SP_E_POOL_READ_ONLY);
        EXPECT_EQ(medium->sync().error().code, SP_E_POOL_READ_ONLY);
        unlink(options_.path.c_str());
    }
}

TEST_F(MappedMediumTest, KeepsItsBytesForTheNextOpening)
{
    const std::uint64_t word = 7;
    create()->store(4096, &word, sizeof word);
    const auto again = open_medium(options_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ((*again)->mapping()[4096], std::byte{7});
}

TEST_F(MappedMediumTest, IsNotInheritedByAChild)
{
    const auto medium = create();
    const pid_t child = fork();
    if (child == 0) {
        int ends[2];
        // A system call looks, since looking by a load would kill the child.
        const bool readable = pipe(ends) == 0 && write(ends[1], medium->mapping(), 1) == 1;
        _exit(readable ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

// Lower bounds only: emulation may take longer than asked, never shorter.

TEST_F(MappedMediumTest, DelaysEveryLineAndEveryPageByTheLatencyThatItEmulates)
{
    options_.line_latency_ns = 1000;
    options_.page_latency_ns = 300'000;
    const auto medium = create();
    std::uint64_t begin = os::monotonic_ns();
    medium->write_back(0, 4 * page_bytes);
    EXPECT_GE(os::monotonic_ns() - begin, 4 * 64 * 1000u);
    const auto pages = test::numbered_pages(4);
    const BlockWrite batch[] = {{0, pages[0].bytes, 4 * page_bytes}};
    begin = os::monotonic_ns();
    ASSERT_TRUE(medium->write(batch));
    EXPECT_GE(os::monotonic_ns() - begin, 4 * 300'000u);
}

TEST_F(MappedMediumTest, DelaysWhatIsAppendedByItsLinesAndItsWholePages)
{
    options_.line_latency_ns = 100'000;
    options_.page_latency_ns = 1'000'000;
    const auto medium = create();
    const auto pages = test::numbered_pages(2);
    std::uint64_t begin = os::monotonic_ns();
    medium->append_lines(0, pages[0].bytes, 3 * cache_line_bytes);
    EXPECT_GE(os::monotonic_ns() - begin, 3 * 100'000u);
    begin = os::monotonic_ns();
    medium->append_lines(page_bytes, pages[0].bytes, page_bytes + cache_line_bytes);
    EXPECT_GE(os::monotonic_ns() - begin, 1'000'000u + 100'000u);
    const LineWrite lines[] = {{0, pages[0].bytes}, {cache_line_bytes, pages[1].bytes}};
    begin = os::monotonic_ns();
    medium->append_each(lines);
    EXPECT_GE(os::monotonic_ns() - begin, 2 * 100'000u);
}

TEST_F(MappedMediumTest, WritesNoFasterThanItsBandwidth)
{
    options_.bandwidth_mb_per_s = 10;
    const auto medium = create();
    const auto pages = test::numbered_pages(16);
    const BlockWrite batch[] = {{0, pages[0].bytes, 16 * page_bytes}};
    const std::uint64_t begin = os::monotonic_ns();
    ASSERT_TRUE(medium->write(batch));
    ASSERT_TRUE(medium->write(batch));
    const std::uint64_t expected_ns = 2 * 16 * page_bytes * 1'000'000'000u / (10 * mib);
    EXPECT_GE(os::monotonic_ns() - begin, expected_ns - 20'000u);  // The device's buffer may be full.
}

}  // namespace
}  // namespace stillpoint
