// The comparison of a private page with its twin:
//   - every byte that differs is in a run, and no other;
//   - two threads that change different bytes of a page, and merge in any order, leave both changes;
//   - a thread that refreshes sees what others have merged, and keeps its own bytes;
//   - a byte that two threads have changed to different values is found, and no other.

#include "engines/nvthreads/processes/page_merge.hpp"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace stillpoint::nvthreads::processes {

namespace {

using Page = std::vector<std::byte>;

Page page_of(std::byte value) { return Page(page_bytes, value); }

std::vector<std::pair<std::size_t, std::size_t>> runs_of(const Page& page, const Page& twin)
{
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    visit_differences(page.data(), twin.data(), [&](std::size_t begin, std::size_t end) { runs.emplace_back(begin, end); });
    return runs;
}

void merge(const Page& page, const Page& twin, Page& shared)
{
    visit_differences(page.data(), twin.data(), [&](std::size_t begin, std::size_t end) {
        std::copy(page.begin() + static_cast<std::ptrdiff_t>(begin), page.begin() + static_cast<std::ptrdiff_t>(end),
                  shared.begin() + static_cast<std::ptrdiff_t>(begin));
    });
}

TEST(PageMerge, FindsEachRunOfDifferingBytes)
{
    const Page twin = page_of(std::byte{7});
    Page page = twin;
    EXPECT_TRUE(runs_of(page, twin).empty());
    const std::vector<std::pair<std::size_t, std::size_t>> expected{{0, 1}, {5, 9}, {15, 17}, {100, 132}, {4090, 4096}};
    for (const auto& [begin, end] : expected) {
        std::fill(page.begin() + static_cast<std::ptrdiff_t>(begin), page.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0x87});
    }
    EXPECT_EQ(runs_of(page, twin), expected);
}

TEST(PageMerge, FindsExactlyTheBytesThatDifferInRandomPages)
{
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        const Page twin = page_of(std::byte{static_cast<unsigned char>(random())});
        Page page = twin;
        for (unsigned i = random() % 64; i != 0; --i) {
            page[random() % page_bytes] = std::byte{static_cast<unsigned char>(random())};
        }
        std::vector<bool> in_run(page_bytes, false);
        std::size_t last_end = 0;
        for (const auto& [begin, end] : runs_of(page, twin)) {
            ASSERT_LT(begin, end);
            ASSERT_TRUE(last_end == 0 || begin > last_end);
            last_end = end;
            std::fill(in_run.begin() + static_cast<std::ptrdiff_t>(begin), in_run.begin() + static_cast<std::ptrdiff_t>(end), true);
        }
        for (std::size_t at = 0; at < page_bytes; ++at) {
            ASSERT_EQ(in_run[at], page[at] != twin[at]) << at;
        }
    }
}

TEST(PageMerge, KeepsTheChangesOfTwoThreadsInAnyOrder)
{
    std::mt19937 random(2);
    for (int round = 0; round < 100; ++round) {
        const Page before = page_of(std::byte{3});
        Page one = before;
        Page other = before;
        Page expected = before;
        for (std::size_t at = 0; at < page_bytes; ++at) {
            Page& changed = random() % 2 == 0 ? one : other;
            if (random() % 4 == 0) {
                changed[at] = std::byte{9};
                expected[at] = std::byte{9};
            }
        }
        Page shared = before;
        merge(random() % 2 == 0 ? one : other, before, shared);
        merge(one, before, shared);
        merge(other, before, shared);
        EXPECT_EQ(shared, expected);
        EXPECT_EQ(find_race(one.data(), before.data(), before.data(), 0, page_bytes), page_bytes);
    }
}

TEST(PageMerge, RefreshesWhatTheThreadHasNotChanged)
{
    Page twin = page_of(std::byte{1});
    Page page = twin;
    Page shared = twin;
    page[8] = std::byte{2};    // Own.
    shared[9] = std::byte{3};  // Another's.
    take_changes_of_others(page.data(), twin.data(), shared.data());
    EXPECT_EQ(page[8], std::byte{2});
    EXPECT_EQ(page[9], std::byte{3});
    EXPECT_EQ(twin[9], std::byte{3});
    EXPECT_EQ(runs_of(page, twin), (std::vector<std::pair<std::size_t, std::size_t>>{{8, 9}}));
}

TEST(PageMerge, FindsAByteThatTwoThreadsHaveChanged)
{
    const Page twin = page_of(std::byte{1});
    Page page = twin;
    Page shared = twin;
    page[100] = std::byte{2};
    shared[100] = std::byte{2};
    EXPECT_EQ(find_race(page.data(), twin.data(), shared.data(), 100, 101), 101U) << "a race of equal values cannot be seen";
    shared[100] = std::byte{3};
    EXPECT_EQ(find_race(page.data(), twin.data(), shared.data(), 100, 101), 100U);
}

}  // namespace

}  // namespace stillpoint::nvthreads::processes
