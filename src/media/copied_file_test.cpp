// A file that is copied in passes. Invariants:
//   - after a pass over a source that did not change meanwhile, finish() makes the copy equal to it, whatever the passes before saw;
//   - a copy that was given up at any point goes on from what is there, and ends as well;
//   - until finish() it does not begin as its source does, and it is recognised as unfinished;
//   - a file that is something else is never touched.

#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "media/copied_file.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t block_bytes = CopiedFile::block_bytes;

class CopiedFileTest : public testing::Test {
protected:
    CopiedFileTest() : source_(open(source_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) { EXPECT_TRUE(source_.valid()); }

    [[nodiscard]] std::string source_path() const { return directory_.file("source"); }
    [[nodiscard]] std::string path() const { return directory_.file("copy"); }

    void fill(std::uint64_t begin, std::uint64_t size, int value)
    {
        const std::vector<std::uint8_t> bytes(size, static_cast<std::uint8_t>(value));
        ASSERT_EQ(pwrite(source_.get(), bytes.data(), bytes.size(), static_cast<off_t>(begin)), static_cast<ssize_t>(size));
    }
    void set_size(std::uint64_t size) { ASSERT_EQ(ftruncate(source_.get(), static_cast<off_t>(size)), 0); }

    CopiedFile open_copy() { return std::move(CopiedFile::open(path(), 0600).value()); }
    CopiedFile::Pass pass_over(CopiedFile& copy, std::size_t late = 0)
    {
        auto pass = copy.take_pass(source_.get(), source_path(), nullptr, {}, late);
        EXPECT_TRUE(pass) << pass.error().message;
        return *pass;
    }
    void finish(CopiedFile& copy)
    {
        ASSERT_TRUE(copy.write_late());
        ASSERT_TRUE(copy.finish());
        ASSERT_TRUE(copy.remove_mark());
    }
    static std::string bytes_of(const std::string& name)
    {
        std::ifstream file(name, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void expect_equal() const { EXPECT_TRUE(bytes_of(path()) == bytes_of(source_path())); }

    test::TemporaryDirectory directory_;
    os::Descriptor source_;
};

TEST_F(CopiedFileTest, IsEqualAndSparse)
{
    set_size(64 * block_bytes);
    fill(0, 4096, 1);
    fill(9 * block_bytes + 4096, 3 * block_bytes, 2);
    fill(40 * block_bytes, 2 * block_bytes, 0);  // zeroes that are written
    CopiedFile copy = open_copy();
    const auto pass = pass_over(copy);
    EXPECT_EQ(pass.bytes_changed, 4 * block_bytes);  // The first block comes at the end.
    finish(copy);
    expect_equal();
    struct stat facts{};
    ASSERT_EQ(stat(path().c_str(), &facts), 0);
    EXPECT_LE(static_cast<std::uint64_t>(facts.st_blocks) * 512, 6 * block_bytes);
}

TEST_F(CopiedFileTest, TakesInTheSecondPassOnlyWhatHasChanged)
{
    set_size(64 * block_bytes);
    fill(0, 64 * block_bytes, 1);
    CopiedFile copy = open_copy();
    pass_over(copy);
    fill(7 * block_bytes + 100, 1, 9);
    EXPECT_EQ(pass_over(copy).bytes_changed, block_bytes);
    EXPECT_EQ(pass_over(copy).bytes_changed, 0U);
    finish(copy);
    expect_equal();
}

TEST_F(CopiedFileTest, IsRecognisedWhereItWasGivenUpAndGoesOn)
{
    set_size(32 * block_bytes);
    fill(0, 32 * block_bytes, 1);
    {
        CopiedFile copy = open_copy();
        pass_over(copy);
        EXPECT_NE(bytes_of(path()).substr(0, 16), bytes_of(source_path()).substr(0, 16));
    }
    fill(3 * block_bytes, 1, 5);
    CopiedFile copy = open_copy();
    EXPECT_TRUE(copy.was_resumed());
    EXPECT_EQ(pass_over(copy).bytes_changed, block_bytes);
    finish(copy);
    expect_equal();
}

TEST_F(CopiedFileTest, IsNoPoolAgainWhenItGoesOnAfterItsFirstBlockWasWritten)
{
    set_size(4 * block_bytes);
    fill(0, 4 * block_bytes, 1);
    {
        CopiedFile copy = open_copy();
        pass_over(copy);
        ASSERT_TRUE(copy.finish());
    }
    CopiedFile copy = open_copy();
    EXPECT_TRUE(copy.was_resumed());
    EXPECT_EQ(bytes_of(path())[0], '\0');
    pass_over(copy);
    finish(copy);
    expect_equal();
}

TEST_F(CopiedFileTest, LeavesOtherFilesAlone)
{
    std::ofstream(path()) << std::string(20000, 'x');
    EXPECT_EQ(CopiedFile::open(path(), 0600).error().code, SP_E_POOL_EXISTS);
    EXPECT_EQ(bytes_of(path()), std::string(20000, 'x'));
}

TEST_F(CopiedFileTest, IsMadeByOneCopierAtATime)
{
    const CopiedFile copy = open_copy();
    EXPECT_EQ(CopiedFile::open(path(), 0600).error().code, SP_E_POOL_LOCKED);
}

TEST_F(CopiedFileTest, EndsAPassThatMayNotGoOnAndTakesAnother)
{
    set_size(64 * block_bytes);
    fill(0, 64 * block_bytes, 1);
    CopiedFile copy = open_copy();
    int left = 2;
    const CopyPermission permission{[](void* count) { return --*static_cast<int*>(count) > 0; }, &left};
    EXPECT_EQ(copy.take_pass(source_.get(), source_path(), nullptr, permission, 8 * block_bytes).error().code, SP_E_TIMED_OUT);
    pass_over(copy, 4 * block_bytes);
    finish(copy);
    expect_equal();
}

TEST_F(CopiedFileTest, EqualsASourceThatChangedInAnyWayBetweenPasses)
{
    std::mt19937 random(7);
    for (int round = 0; round < 8; ++round) {
        std::remove(path().c_str());
        set_size(0);
        set_size(20 * block_bytes);
        auto copy = std::make_unique<CopiedFile>(open_copy());
        for (int pass = 0; pass < 5; ++pass) {
            for (int change = 0; change < 6; ++change) {
                const std::uint64_t begin = random() % (20 * block_bytes);
                fill(begin, 1 + random() % (2 * block_bytes), random() % 3 == 0 ? 0 : static_cast<int>(random() % 250));
            }
            set_size((10 + random() % 20) * block_bytes + random() % 3 * 4096);
            pass_over(*copy, random() % 2 * 3 * block_bytes);
            if (random() % 4 == 0) {
                copy.reset();
                copy = std::make_unique<CopiedFile>(open_copy());
            }
        }
        pass_over(*copy);
        finish(*copy);
        copy.reset();
        expect_equal();
    }
}

TEST_F(CopiedFileTest, TakesAStream)
{
    set_size(40 * block_bytes + 4096);
    fill(0, 4096, 1);
    fill(20 * block_bytes, 6 * block_bytes, 3);
    CopiedFile copy = open_copy();
    const auto pass = copy.take_stream(source_.get(), "a stream");
    ASSERT_TRUE(pass) << pass.error().message;
    finish(copy);
    expect_equal();
}

}  // namespace
}  // namespace stillpoint
