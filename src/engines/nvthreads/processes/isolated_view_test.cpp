// A thread's view of the image, two of them in one process:
//   - stores to private pages are seen by no other view before they are merged, and by all after it;
//   - a merge leaves the bytes that another view has merged into the same page meanwhile;
//   - a refresh brings what another has merged, and keeps own stores;
//   - dropped pages are the shared ones again;
//   - two stores to one byte are found as a race;
//   - more changes than a record holds are told.

#include "engines/nvthreads/processes/isolated_view.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace stillpoint::nvthreads::processes {

namespace {

constexpr std::uint64_t pages = 16;
constexpr std::uint64_t image_bytes = pages * page_bytes;

class Views : public testing::Test {
protected:
    struct Thread {
        std::byte* base = nullptr;
        IsolatedView view;
        std::vector<std::byte> record = std::vector<std::byte>(image_bytes);

        void store(std::uint64_t offset, unsigned value)
        {
            ASSERT_TRUE(view.open_page(base + offset));
            base[offset] = std::byte{static_cast<unsigned char>(value)};
        }
        [[nodiscard]] unsigned load(std::uint64_t offset) const { return std::to_integer<unsigned>(base[offset]); }
        void merge()
        {
            const std::uint64_t bytes = view.collect(record.data(), record.size());
            ASSERT_NE(bytes, UINT64_MAX);
            view.apply(record.data(), bytes);
            view.drop();
        }
    };

    void SetUp() override
    {
        ASSERT_GE(file, 0);
        ASSERT_EQ(ftruncate(file, image_bytes), 0);
        for (Thread* const thread : {&one, &other}) {
            void* const place = mmap(nullptr, image_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            ASSERT_NE(place, MAP_FAILED);
            thread->base = static_cast<std::byte*>(place);
            ASSERT_TRUE(thread->view.map(thread->base, image_bytes, file));
        }
    }
    void TearDown() override
    {
        munmap(one.base, image_bytes);
        munmap(other.base, image_bytes);
        close(file);
    }

    const int file = memfd_create("views", MFD_CLOEXEC);
    Thread one;
    Thread other;
};

TEST_F(Views, ShowStoresWhenTheyAreMerged)
{
    one.store(100, 1);
    one.store(5 * page_bytes, 2);
    EXPECT_EQ(one.load(100), 1U);
    EXPECT_EQ(other.load(100), 0U);
    one.merge();
    EXPECT_TRUE(one.view.is_clean());
    EXPECT_EQ(one.load(100), 1U);
    EXPECT_EQ(other.load(100), 1U);
    EXPECT_EQ(other.load(5 * page_bytes), 2U);
}

TEST_F(Views, MergeTheirBytesOfOnePage)
{
    one.store(10, 1);
    other.store(11, 2);
    one.merge();
    EXPECT_EQ(other.load(10), 0U) << "its page is private";
    EXPECT_EQ(other.view.find_race(), nullptr);
    other.merge();
    EXPECT_EQ(one.load(10), 1U);
    EXPECT_EQ(one.load(11), 2U);
}

TEST_F(Views, ARefreshBringsWhatOthersHaveMerged)
{
    one.store(10, 1);
    other.store(11, 2);
    other.merge();
    one.view.refresh();
    EXPECT_EQ(one.load(10), 1U);
    EXPECT_EQ(one.load(11), 2U);
    one.store(11, 3);
    EXPECT_EQ(one.view.find_race(), nullptr) << "it has seen the other's value";
    one.merge();
    EXPECT_EQ(other.load(11), 3U);
}

TEST_F(Views, DroppedStoresAreGone)
{
    one.store(10, 1);
    one.view.drop();
    EXPECT_EQ(one.load(10), 0U);
    one.merge();
    EXPECT_EQ(other.load(10), 0U);
}

TEST_F(Views, FindARace)
{
    one.store(10, 1);
    other.store(10, 2);
    one.merge();
    EXPECT_EQ(other.view.find_race(), other.base + 10);
}

TEST_F(Views, TellOfMoreThanARecordHolds)
{
    one.store(10, 1);
    EXPECT_EQ(one.view.collect(one.record.data(), 8), UINT64_MAX);
}

}  // namespace

}  // namespace stillpoint::nvthreads::processes
