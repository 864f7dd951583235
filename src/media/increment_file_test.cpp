// Increments. Invariants:
//   - added to the state that it was made after, an increment makes exactly the state that it was made of;
//   - the base may be a whole file, or an increment: only digests are needed;
//   - every flipped bit, and every cut, is noticed;
//   - under an unfinished name nothing passes for an increment, and a file that is something else is never touched.

#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "media/increment_file.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t increment_block = CopiedFile::block_bytes;
const IncrementedPool pool{{1, 2, 3}, "engine", 4};

class IncrementTest : public testing::Test {
protected:
    IncrementTest() : source_(open(path("source").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}

    [[nodiscard]] std::string path(const char* name) const { return directory_.file(name); }
    void fill(std::uint64_t begin, std::uint64_t size, int value)
    {
        const std::vector<std::uint8_t> bytes(size, static_cast<std::uint8_t>(value));
        ASSERT_EQ(pwrite(source_.get(), bytes.data(), bytes.size(), static_cast<off_t>(begin)), static_cast<ssize_t>(size));
    }
    void set_size(std::uint64_t size) { ASSERT_EQ(ftruncate(source_.get(), static_cast<off_t>(size)), 0); }
    [[nodiscard]] std::uint64_t size() const
    {
        struct stat facts{};
        EXPECT_EQ(fstat(source_.get(), &facts), 0);
        return static_cast<std::uint64_t>(facts.st_size);
    }
    [[nodiscard]] PageDigests digests_now() const
    {
        return std::move(*PageDigests::of_file(source_.get(), "source", size(), digest_seed(pool.uuid)));
    }
    static std::string bytes_of(const std::string& name)
    {
        std::ifstream file(name, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static void write(const std::string& name, const std::string& bytes) { std::ofstream(name, std::ios::binary) << bytes; }

    /// An increment of what the source holds now.
    layout::IncrementHeader make(const char* name, const PageDigests& base, std::uint64_t epoch)
    {
        auto scratch = std::move(*CopiedFile::open(path("scratch"), 0600));
        unlink(path("scratch").c_str());
        scratch.leave_out(base);
        EXPECT_TRUE(scratch.take_pass(source_.get(), "source", nullptr));
        auto increment = std::move(*NewIncrement::open(path(name), 0600));
        const layout::FileState before{epoch - 1, 1, base.pages() * page_bytes, base.of_all()};
        const auto made = increment.write(pool, before, base, {epoch, 1, size(), 0}, scratch);
        EXPECT_TRUE(made) << made.error().message;
        return *made;
    }
    /// Adds it to a file of these bytes.
    [[nodiscard]] std::string added_to(std::string bytes, const char* name) const
    {
        const auto increment = IncrementFile::open(path(name));
        EXPECT_TRUE(increment) << increment.error().message;
        bytes.resize(increment->header().own.file_bytes, '\0');
        const auto put = [](void* all, std::uint64_t page, const std::byte* from) -> Result<void> {
            static_cast<std::string*>(all)->replace(page * page_bytes, page_bytes, reinterpret_cast<const char*>(from), page_bytes);
            return {};
        };
        EXPECT_TRUE(increment->visit(put, &bytes));
        return bytes;
    }
    [[nodiscard]] Result<void> read_all_of(const std::string& name) const
    {
        const auto increment = IncrementFile::open(name);
        if (!increment) {
            return pass_on(increment.error());
        }
        return increment->visit([](void*, std::uint64_t, const std::byte*) -> Result<void> { return {}; }, nullptr);
    }

    test::TemporaryDirectory directory_;
    os::Descriptor source_;
};

TEST_F(IncrementTest, MakesTheNewStateOfTheOldOne)
{
    set_size(64 * increment_block);
    fill(0, 40 * increment_block, 1);
    const PageDigests base = digests_now();
    const std::string before = bytes_of(path("source"));
    fill(100, 1, 9);                                 // in the first block
    fill(7 * increment_block + 2 * page_bytes, 10, 2);   // one page
    fill(20 * increment_block, 2 * increment_block, 0);      // cleared
    fill(50 * increment_block, page_bytes, 3);           // that was a hole
    const layout::IncrementHeader made = make("increment", base, 2);
    EXPECT_EQ(made.changed_pages, 3U);
    EXPECT_EQ(made.cleared_pages, 2 * increment_block / page_bytes);
    EXPECT_TRUE(added_to(before, "increment") == bytes_of(path("source")));
    EXPECT_LT(bytes_of(path("increment")).size(), 40 * page_bytes);
}

TEST_F(IncrementTest, IsMadeAfterAnIncrementWithoutTheWholeCopy)
{
    set_size(16 * increment_block);
    fill(0, 16 * increment_block, 1);
    const std::string first = bytes_of(path("source"));
    make("base", digests_now(), 1);
    fill(3 * increment_block, 1, 2);
    const auto base = IncrementFile::open(path("base"));
    ASSERT_TRUE(base);
    EXPECT_EQ(base->header().changed_pages, 0U);
    const auto made = make("next", base->digests(), 2);
    EXPECT_EQ(made.changed_pages, 1U);
    EXPECT_EQ(made.base.digest, base->header().own.digest);
    EXPECT_TRUE(added_to(first, "next") == bytes_of(path("source")));
}

TEST_F(IncrementTest, EqualsAnyStateAfterAnyOther)
{
    std::mt19937 random(11);
    set_size(20 * increment_block);
    for (int round = 0; round < 8; ++round) {
        const PageDigests base = digests_now();
        const std::string before = bytes_of(path("source"));
        for (auto change = random() % 6; change > 0; --change) {
            const std::uint64_t begin = random() % (19 * increment_block);
            fill(begin, 1 + random() % (2 * increment_block), random() % 3 == 0 ? 0 : static_cast<int>(random() % 250));
        }
        set_size((10 + random() % 20) * increment_block + random() % 3 * page_bytes);
        make("increment", base, 2);
        ASSERT_TRUE(added_to(before, "increment") == bytes_of(path("source"))) << round;
    }
}

TEST_F(IncrementTest, RefusesEveryFlippedByteAndEveryCut)
{
    set_size(2 * increment_block);
    fill(0, 4 * page_bytes, 1);
    const PageDigests base = digests_now();
    fill(page_bytes, 1, 2);
    fill(2 * page_bytes, page_bytes, 0);
    make("increment", base, 2);
    const std::string sound = bytes_of(path("increment"));
    ASSERT_TRUE(read_all_of(path("increment")));
    const std::string damaged = path("damaged");
    write(damaged, sound);
    const os::Descriptor file{open(damaged.c_str(), O_WRONLY | O_CLOEXEC)};
    const auto put = [&](std::size_t at, char byte) { ASSERT_EQ(pwrite(file.get(), &byte, 1, static_cast<off_t>(at)), 1); };
    for (std::size_t at = 0; at < sound.size(); ++at) {
        put(at, static_cast<char>(sound[at] ^ (1 << at % 8)));
        const auto read = read_all_of(damaged);
        ASSERT_FALSE(read) << at;
        ASSERT_EQ(read.error().code, at < 8 ? SP_E_NOT_A_POOL : SP_E_POOL_CORRUPT) << at << read.error().message;
        put(at, sound[at]);
    }
    EXPECT_TRUE(read_all_of(damaged));
    for (std::size_t length = 0; length < sound.size(); length += length < 64 ? 1 : 97) {
        write(damaged, sound.substr(0, length));
        ASSERT_FALSE(read_all_of(damaged)) << length;
    }
    write(damaged, sound + std::string(1, '\0'));
    EXPECT_EQ(read_all_of(damaged).error().code, SP_E_POOL_CORRUPT);
}

TEST_F(IncrementTest, IsNoneUntilItIsFinishedAndIsWrittenAgainAfterAKill)
{
    set_size(4 * increment_block);
    {
        const auto begun = NewIncrement::open(path("increment"), 0600);
        ASSERT_TRUE(begun);
        EXPECT_FALSE(is_increment(path("increment")));
        EXPECT_EQ(NewIncrement::open(path("increment"), 0600).error().code, SP_E_POOL_LOCKED);
        EXPECT_EQ(IncrementFile::open(path("increment")).error().code, SP_E_NOT_A_POOL);
    }
    make("increment", digests_now(), 2);
    EXPECT_TRUE(is_increment(path("increment")));
}

TEST_F(IncrementTest, LeavesOtherFilesAlone)
{
    write(path("other"), std::string(20000, 'x'));
    EXPECT_EQ(NewIncrement::open(path("other"), 0600).error().code, SP_E_POOL_EXISTS);
    EXPECT_EQ(bytes_of(path("other")), std::string(20000, 'x'));
    EXPECT_EQ(IncrementFile::open(path("other")).error().code, SP_E_NOT_A_POOL);
    EXPECT_EQ(IncrementFile::open(path("none")).error().code, SP_E_POOL_MISSING);
}

}  // namespace
}  // namespace stillpoint
