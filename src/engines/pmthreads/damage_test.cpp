// Damaged pools: every damage is found or repaired; none passes for an older or another state.

#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>
#include <vector>

#include "support/cases.hpp"
#include "support/crashing_program.hpp"
#include "engines/pmthreads/pmthreads_layout.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::pmthreads {
namespace {

using test::could_not_open;
using test::run_with_pool;

constexpr std::uint64_t mark = 0x6b72614d6b72614d;
constexpr std::size_t marked_bytes = 64 * 1024;

/// The marks of one page differ from those of the next.
std::uint64_t mark_of(std::size_t word) { return mark + word / (page_bytes / sizeof mark); }
constexpr const char* options = "pool_size_mb=16 interval_ms=3600000 durability=process";

std::vector<std::byte> file_bytes(const std::string& path)
{
    const int file = open(path.c_str(), O_RDONLY);
    struct stat facts{};
    fstat(file, &facts);
    std::vector<std::byte> bytes(static_cast<std::size_t>(facts.st_size));
    EXPECT_EQ(pread(file, bytes.data(), bytes.size(), 0), facts.st_size);
    close(file);
    return bytes;
}

void flip_bit(const std::string& path, std::uint64_t offset, unsigned bit = 0)
{
    const int file = open(path.c_str(), O_RDWR);
    unsigned char byte = 0;
    ASSERT_EQ(pread(file, &byte, 1, static_cast<off_t>(offset)), 1);
    byte = static_cast<unsigned char>(byte ^ (1u << bit));
    ASSERT_EQ(pwrite(file, &byte, 1, static_cast<off_t>(offset)), 1);
    close(file);
}

int write_marks()
{
    auto* words = static_cast<std::uint64_t*>(sp_root("marked", marked_bytes));
    sp_fase_begin();
    for (std::size_t i = 0; i < marked_bytes / sizeof *words; ++i) {
        words[i] = mark_of(i);
    }
    sp_fase_end();
    return sp_checkpoint();
}

int read_marks()
{
    const auto* words = static_cast<const std::uint64_t*>(sp_root("marked", marked_bytes));
    for (std::size_t i = 0; i < marked_bytes / sizeof *words; ++i) {
        if (words[i] != mark_of(i)) {
            return 1;
        }
    }
    return 0;
}

class PmthreadsDamage : public testing::Test {
protected:
    void SetUp() override { ASSERT_EQ(run_with_pool(pool_, options, &write_marks), 0); }

    int reopen(const char* more = "") { return run_with_pool(pool_, std::string(options) + more, &read_marks); }

    /// File offset of the first page that is full of marks.
    std::uint64_t marked_page()
    {
        const auto bytes = file_bytes(pool_);
        const std::vector<std::uint64_t> full(page_bytes / sizeof mark, mark + 3);
        for (std::uint64_t at = 0; at + page_bytes <= bytes.size(); at += page_bytes) {
            if (std::memcmp(bytes.data() + at, full.data(), page_bytes) == 0) {
                return at;
            }
        }
        return 0;
    }

    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

constexpr std::uint64_t engine_area = 2 * page_bytes;

TEST_F(PmthreadsDamage, OfAPageIsFoundBeforeTheProgramSeesIt)
{
    const std::uint64_t page = marked_page();
    ASSERT_NE(page, 0U);
    flip_bit(pool_, page + 100, 3);
    EXPECT_EQ(reopen(" recovery=eager"), could_not_open);
    EXPECT_EQ(reopen(" recovery=lazy"), EX_DATAERR);
    flip_bit(pool_, page + 100, 3);
    EXPECT_EQ(reopen(), 0);
}

TEST_F(PmthreadsDamage, OfACopyInTheOtherPlaceIsFound)
{
    const std::uint64_t page = marked_page();
    ASSERT_NE(page, 0U);
    const auto bytes = file_bytes(pool_);
    // Two valid page copies change places: each is whole, neither is where it belongs.
    const int file = open(pool_.c_str(), O_RDWR);
    ASSERT_EQ(pwrite(file, bytes.data() + page + page_bytes, page_bytes, static_cast<off_t>(page)), static_cast<ssize_t>(page_bytes));
    close(file);
    EXPECT_EQ(reopen(" recovery=eager"), could_not_open);
}

TEST_F(PmthreadsDamage, OfOneCommitRecordIsRepairedFromItsTwin)
{
    const auto step = static_cast<unsigned>(test::case_step(37, 131));
    for (std::uint64_t record_page = 0; record_page < engine_area_pages; ++record_page) {
        const auto before = file_bytes(pool_);
        for (unsigned bit = 0; bit < 8 * sizeof(CommitRecord); bit += step) {
            flip_bit(pool_, engine_area + record_page * page_bytes + bit / 8, bit % 8);
            EXPECT_EQ(reopen(" recovery=eager"), 0) << "page " << record_page << " bit " << bit;
            const int file = open(pool_.c_str(), O_RDWR);
            ASSERT_EQ(pwrite(file, before.data(), before.size(), 0), static_cast<ssize_t>(before.size()));
            close(file);
        }
    }
}

TEST_F(PmthreadsDamage, OfAPageOfTheVersionTableIsRepairedFromItsTwin)
{
    const std::uint64_t table = engine_area + engine_area_pages * page_bytes;
    const std::uint64_t pages = versions::table_file_pages(16 * mib / page_bytes);
    const auto before = file_bytes(pool_);
    for (std::uint64_t page = 0; page < pages; page += page < 4 ? 1 : 7) {
        const std::vector<std::byte> nonsense(page_bytes, std::byte{0xee});
        const int file = open(pool_.c_str(), O_RDWR);
        const auto offset = static_cast<off_t>(table + page * page_bytes);
        ASSERT_EQ(pwrite(file, nonsense.data(), page_bytes, offset), static_cast<ssize_t>(page_bytes));
        EXPECT_EQ(reopen(" recovery=eager"), 0) << "table page " << page;
        ASSERT_EQ(pwrite(file, before.data(), before.size(), 0), static_cast<ssize_t>(before.size()));
        close(file);
    }
}

TEST_F(PmthreadsDamage, OfAllCommitRecordsIsRefused)
{
    for (std::uint64_t record_page = 0; record_page < engine_area_pages; ++record_page) {
        flip_bit(pool_, engine_area + record_page * page_bytes + 30);
        flip_bit(pool_, engine_area + record_page * page_bytes + witness_offset + 30);
    }
    EXPECT_EQ(reopen(), could_not_open);
}

TEST_F(PmthreadsDamage, ByALostTableWriteIsFound)
{
    const auto before = file_bytes(pool_);
    EXPECT_EQ(run_with_pool(pool_, options,
                            [] {
                                auto* words = static_cast<std::uint64_t*>(sp_root("marked", marked_bytes));
                                sp_fase_begin();
                                words[0] = 1;
                                sp_fase_end();
                                return sp_checkpoint();
                            }),
              0);
    // The disk kept the old table page of the first segment, whose checksums were all valid once.
    const std::uint64_t table = engine_area + engine_area_pages * page_bytes;
    const int file = open(pool_.c_str(), O_RDWR);
    const std::uint64_t bytes = versions::table_file_pages(16 * mib / page_bytes) * page_bytes;
    ASSERT_EQ(pwrite(file, before.data() + table, bytes, static_cast<off_t>(table)), static_cast<ssize_t>(bytes));
    close(file);
    EXPECT_EQ(reopen(), could_not_open);
}

}  // namespace
}  // namespace stillpoint::pmthreads
