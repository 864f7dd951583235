// Invariants of the tracker hooks: what is marked is found once, as runs of neighbouring pages; what lies outside the range
// that is examined keeps its marks; a look that has no room continues where it stopped.

#include <gtest/gtest.h>
#include <cstring>
#include <sys/mman.h>
#include <vector>

#include "core/store_marks.hpp"
#include "core/units.hpp"
#include "engines/pmthreads/tracker.hpp"
#include "os/card_table.hpp"

namespace stillpoint::pmthreads {
namespace {

constexpr std::uint64_t pages = 512;

std::uintptr_t page_address(std::uint64_t page) { return window_base + page * page_bytes; }

class HooksTracker : public testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_TRUE(os::map_cards(reinterpret_cast<void*>(window_base), 2 * pages * page_bytes));
        // Other tests' copies leave tags there, which cost a needless mark at most.
        std::memset(store_marks::card_of(window_base), 0, 2 * pages * page_bytes / cache_line_bytes);
        auto made = make_tracker("hooks", pages * page_bytes, false);
        ASSERT_TRUE(made);
        tracker_ = std::move(*made);
        ASSERT_TRUE(tracker_->add_range(reinterpret_cast<std::byte*>(window_base), pages * page_bytes, 0));
    }

    static void mark(std::uint64_t page, std::size_t bytes = 1) { note_store(reinterpret_cast<void*>(page_address(page) + 4095), bytes); }

    /// The runs that looks at [first, last) find with room for `capacity` runs, as pairs of pages.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> collect(std::uint64_t first = 0, std::uint64_t last = pages,
                                                                 std::size_t capacity = pages, ScanMode scan_mode = ScanMode::stop)
    {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
        std::vector<WrittenRun> runs(capacity);
        for (std::uintptr_t at = page_address(first); at < page_address(last);) {
            std::size_t count = 0;
            at = tracker_->collect(at, page_address(last), scan_mode, runs.data(), capacity, count);
            for (std::size_t i = 0; i < count; ++i) {
                EXPECT_TRUE(runs[i].certain);
                found.emplace_back((runs[i].begin - window_base) / page_bytes, (runs[i].end - window_base) / page_bytes);
            }
        }
        return found;
    }

    using Runs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    std::unique_ptr<Tracker> tracker_;
};

TEST_F(HooksTracker, FindsMarkedPagesOnceAndJoinsNeighbours)
{
    for (const std::uint64_t page : {0u, 7u, 8u, 9u, 63u, 64u, 200u, 511u}) {
        mark(page);
    }
    EXPECT_EQ(collect(), (Runs{{0, 1}, {7, 10}, {63, 65}, {200, 201}, {511, 512}}));
    EXPECT_EQ(collect(), Runs{});
    mark(9);
    EXPECT_EQ(collect(0, pages, pages, ScanMode::background), (Runs{{9, 10}}));
}

TEST_F(HooksTracker, MarksEveryPageThatAStoreTouchesAndNoneOutsideTheWindow)
{
    mark(20, 2);
    mark(30, 3 * page_bytes);
    note_store(reinterpret_cast<void*>(page_address(40)), 0);
    int on_stack = 0;
    note_store(&on_stack, sizeof on_stack);
    note_store(reinterpret_cast<void*>(window_base + window_bytes - 1), SIZE_MAX);
    EXPECT_EQ(collect(), (Runs{{20, 22}, {30, 34}}));
}

TEST_F(HooksTracker, LeavesMarksOutsideTheRangeAlone)
{
    for (std::uint64_t page = 0; page < 16; ++page) {
        mark(page);
    }
    EXPECT_EQ(collect(3, 13), (Runs{{3, 13}}));
    EXPECT_EQ(collect(), (Runs{{0, 3}, {13, 16}}));
}

TEST_F(HooksTracker, GoesOnWhereItHadNoMoreRoom)
{
    for (std::uint64_t page = 0; page < pages; page += 2) {
        mark(page);
    }
    const Runs found = collect(0, pages, 5);
    ASSERT_EQ(found.size(), pages / 2);
    for (std::uint64_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i], (Runs::value_type{2 * i, 2 * i + 1}));
    }
}

TEST_F(HooksTracker, TakesAGrownRangeAsNotWritten)
{
    mark(pages + 3);
    ASSERT_TRUE(tracker_->add_range(reinterpret_cast<std::byte*>(page_address(pages)), 64 * page_bytes, 0));
    mark(pages + 5);
    EXPECT_EQ(collect(0, pages + 64), (Runs{{pages + 5, pages + 6}}));
}

TEST_F(HooksTracker, KnowsTheLinesOfAPageOnce)
{
    for (const std::uint64_t line : {0u, 7u, 8u, 40u, 63u}) {
        note_store(reinterpret_cast<void*>(page_address(5) + line * cache_line_bytes + 3), 1);
    }
    EXPECT_EQ(collect(0, pages, pages, ScanMode::background), (Runs{{5, 6}}));
    note_store(reinterpret_cast<void*>(page_address(5) + 63 * cache_line_bytes), 2 * cache_line_bytes);
    EXPECT_EQ(collect(), (Runs{{5, 7}}));
    EXPECT_EQ(tracker_->take_found_lines(5), (1u | 1u << 7 | 1u << 8 | std::uint64_t{1} << 40 | std::uint64_t{1} << 63));
    EXPECT_EQ(tracker_->take_found_lines(5), 0u);
    EXPECT_EQ(tracker_->take_found_lines(6), 1u);
}

TEST_F(HooksTracker, MarksAReleasedLockOnlyWhereItsLineWasCopiedAheadInThisEpoch)
{
    const auto release = [](std::uint64_t page) { note_lock_free(reinterpret_cast<void*>(page_address(page) + 40), 40); };
    release(3);
    EXPECT_EQ(collect(), Runs{});
    // The first of its two lines is copied ahead.
    note_store(reinterpret_cast<void*>(page_address(3)), 1);
    EXPECT_EQ(collect(0, pages, pages, ScanMode::background), (Runs{{3, 4}}));
    EXPECT_EQ(tracker_->take_found_lines(3), 1u);
    release(3);
    EXPECT_EQ(collect(0, pages, pages, ScanMode::background), (Runs{{3, 4}}));
    EXPECT_EQ(tracker_->take_found_lines(3), 1u);
    tracker_->epoch_captured();
    release(3);
    EXPECT_EQ(collect(), Runs{});
    // A page that is copied whole has all of its locks copied.
    tracker_->take_whole_page(9);
    tracker_->order_copies();
    release(9);
    EXPECT_EQ(collect(), (Runs{{9, 10}}));
    EXPECT_EQ(tracker_->take_found_lines(9), 3u);
}

TEST_F(HooksTracker, WantsNoMarksWhenItIsGone)
{
    tracker_.reset();
    *store_marks::card_of(page_address(1)) = 0;  // An earlier session may have left a tag.
    mark(1);
    EXPECT_EQ(*store_marks::card_of(page_address(1)), 0);
    EXPECT_EQ(*store_marks::page_card_of(page_address(1)), 0);
}

}  // namespace
}  // namespace stillpoint::pmthreads
