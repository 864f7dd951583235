// Invariants of captures: a page of which few lines were written gives those lines, as they are at the last look that found them; one with
// many gives itself, in this epoch and the next; one that gave lines before it was taken whole is told.

#include <cstring>
#include <gtest/gtest.h>
#include <memory>

#include "core/store_marks.hpp"
#include "engines/pmthreads/capture.hpp"
#include "runtime/kernel_writes.hpp"

namespace stillpoint::pmthreads {
namespace {

constexpr std::uint64_t few_pages = 256;

class Captures : public testing::Test {
protected:
    void SetUp() override { prepare(few_pages, few_pages); }

    void prepare(std::uint64_t pages, std::uint64_t staging_pages)
    {
        const Segment segment{0, pages, 6, versions::segment_file_pages_with_deltas(pages)};
        ASSERT_TRUE(shadow_.map(window_base, pages * page_bytes, pages * page_bytes, Shadow::Pages::small));
        auto made = make_tracker("hooks", pages * page_bytes, false);
        ASSERT_TRUE(made);
        tracker_ = std::move(*made);
        ASSERT_TRUE(tracker_->add_range(shadow_.base(), pages * page_bytes, 0));
        ASSERT_TRUE(table_.reserve(pages, Uuid{}));
        table_.extend(segment);
        for (std::uint64_t page = 0; page + 1 < pages; ++page) {
            table_.switch_copy(page, {1, static_cast<std::uint32_t>(versions::first_data_page(segment) + page), 0});
        }
        ASSERT_TRUE(log_.reserve(pages, 1));
        log_.add_segment(segment);
        log_.begin_epoch(2);
        ASSERT_TRUE(capture_.reserve(pages, staging_pages, &log_, &table_));
        ASSERT_TRUE(team_.start());
    }

    void store(std::uint64_t page, std::uint64_t line, std::uint64_t value)
    {
        std::byte* const at = shadow_.base() + page * page_bytes + line * cache_line_bytes;
        std::memcpy(at, &value, sizeof value);
        note_store(at, sizeof value);
    }
    void store_many(std::uint64_t page, std::uint64_t value)
    {
        for (std::uint64_t line = 0; line < 40; ++line) {
            store(page, line, value + line);
        }
    }
    static constexpr std::uint64_t interval_ns = 100'000'000;
    void end_epoch()
    {
        for (std::uint64_t i = 0; i < capture_.page_count(); ++i) {
            if (capture_.is_staged(i)) {
                capture_.note_written(i);
            }
        }
        capture_.clear(now_ns_ += interval_ns);
        tracker_->epoch_captured();
    }
    /// The page gives lines from here on.
    void make_kept_copy_of(std::uint64_t page)
    {
        store_many(page, 100);
        EXPECT_EQ(look(ScanMode::stop), 1U);
        end_epoch();
        store(page, 1, 7);
        EXPECT_EQ(look(ScanMode::stop), 1U);
        end_epoch();
    }
    [[nodiscard]] bool is_as_the_page(std::uint64_t index) const
    {
        return std::memcmp(capture_.staged(index), shadow_.page(capture_.page(index)), page_bytes) == 0;
    }
    std::uint64_t look(ScanMode scan_mode)
    {
        Pacer pacer(wakes_, hurry_);
        const bool in_stop = scan_mode == ScanMode::stop;
        const auto found = capture_.collect(*tracker_, shadow_, scan_mode, in_stop ? &team_ : nullptr, in_stop ? nullptr : &pacer);
        EXPECT_TRUE(found);
        return *found;
    }
    [[nodiscard]] std::uint64_t word_of_line(std::uint64_t number) const
    {
        std::uint64_t word = 0;
        std::memcpy(&word, capture_.deltas().lines + number * cache_line_bytes, sizeof word);
        return word;
    }

    Shadow shadow_;
    std::unique_ptr<Tracker> tracker_;
    versions::VersionTable table_;
    versions::DeltaLog log_;
    Capture capture_;
    std::uint64_t now_ns_ = 1'000 * RecentPeak::period_ns;
    CopyTeam team_;
    std::atomic<std::uint32_t> wakes_{0};
    std::atomic<bool> hurry_{false};
};

TEST_F(Captures, LinesAreThoseOfTheLastLook)
{
    store(10, 3, 100);
    store(10, 60, 101);
    EXPECT_EQ(look(ScanMode::background), 1U);
    store(10, 3, 102);
    store(20, 0, 103);
    EXPECT_EQ(look(ScanMode::stop), 2U);
    const versions::DeltaBatch batch = capture_.deltas();
    ASSERT_EQ(batch.pages.size(), 3U);
    EXPECT_EQ(batch.line_count, 4U);
    EXPECT_EQ(batch.pages[0], 10U);
    EXPECT_EQ(batch.masks[0], (std::uint64_t{1} << 3) | (std::uint64_t{1} << 60));
    EXPECT_EQ(word_of_line(0), 100U);
    EXPECT_EQ(word_of_line(1), 101U);
    EXPECT_EQ(batch.masks[1], std::uint64_t{1} << 3);
    EXPECT_EQ(word_of_line(2), 102U);
    EXPECT_EQ(word_of_line(3), 103U);
    EXPECT_EQ(capture_.page_count(), 0U);
    EXPECT_EQ(capture_.found_pages(), 2U);
}

TEST_F(Captures, APageThatGaveLinesAndIsTakenWholeIsTold)
{
    store(10, 3, 100);
    EXPECT_EQ(look(ScanMode::background), 1U);
    EXPECT_TRUE(capture_.made_whole().empty());
    for (std::uint64_t line = 0; line < 40; ++line) {
        store(10, line, 200 + line);
        store(11, line, 300 + line);
    }
    EXPECT_EQ(look(ScanMode::stop), 2U);
    ASSERT_EQ(capture_.made_whole().size(), 1U);
    EXPECT_EQ(capture_.made_whole()[0], 10U);
    ASSERT_EQ(capture_.page_count(), 2U);
    EXPECT_TRUE(is_as_the_page(0));
}

TEST_F(Captures, APageOfManyLinesIsWholeAtOnceInTheNextEpochAndInPartAfterIt)
{
    store_many(5, 0);
    EXPECT_EQ(look(ScanMode::stop), 1U);
    EXPECT_EQ(capture_.page_count(), 1U);
    for (const std::uint64_t whole : {1U, 0U}) {
        end_epoch();
        store(5, 1, 7);
        EXPECT_EQ(look(ScanMode::stop), 1U);
        EXPECT_EQ(capture_.page_count(), whole);
        EXPECT_EQ(capture_.deltas().line_count, 1 - whole);
    }
}

constexpr std::uint64_t all_lines = UINT64_MAX;

TEST_F(Captures, OfAPageWithACopyOnlyLinesAreCopiedAgain)
{
    store_many(5, 100);
    EXPECT_EQ(look(ScanMode::background), 1U);
    EXPECT_EQ(capture_.copied_bytes(), page_bytes);
    store(5, 50, 7);
    EXPECT_EQ(look(ScanMode::stop), 1U);
    EXPECT_LT(capture_.copied_bytes(), page_bytes);
    ASSERT_EQ(capture_.page_count(), 1U);
    EXPECT_TRUE(is_as_the_page(0));
    EXPECT_EQ(capture_.changed_lines(0), all_lines);
    end_epoch();
    store(5, 2, 8);
    store(5, 60, 9);
    EXPECT_EQ(look(ScanMode::stop), 1U);
    EXPECT_LT(capture_.copied_bytes(), page_bytes);
    ASSERT_EQ(capture_.page_count(), 1U);
    EXPECT_TRUE(is_as_the_page(0));
    EXPECT_EQ(capture_.changed_lines(0), (std::uint64_t{1} << 2) | (std::uint64_t{1} << 60));
}

TEST_F(Captures, ACopyIsKeptUpToDateWhileItsPageGivesLines)
{
    make_kept_copy_of(5);
    store(5, 2, 8);
    EXPECT_EQ(look(ScanMode::stop), 1U);
    EXPECT_EQ(capture_.page_count(), 0U);
    end_epoch();
    store(5, 3, 9);
    capture_.want_whole(5);
    capture_.want_whole(6);
    EXPECT_EQ(look(ScanMode::stop), 2U);
    ASSERT_EQ(capture_.page_count(), 2U);
    EXPECT_TRUE(is_as_the_page(0));
    EXPECT_TRUE(is_as_the_page(1));
    EXPECT_EQ(capture_.changed_lines(0), 0b1100U);
    EXPECT_EQ(capture_.changed_lines(1), all_lines);
}

TEST_F(Captures, StoresOfASystemCallAreCopiedWithTheWholePage)
{
    ASSERT_TRUE(kernel_writes::reserve());
    store_many(5, 100);
    EXPECT_EQ(look(ScanMode::stop), 1U);
    end_epoch();
    store(5, 2, 8);
    std::byte* const from_outside = shadow_.base() + 5 * page_bytes + 33 * cache_line_bytes;
    *from_outside = std::byte{77};
    kernel_writes::note_stored(from_outside, 1);
    EXPECT_EQ(look(ScanMode::stop), 1U);
    ASSERT_EQ(capture_.page_count(), 1U);
    EXPECT_TRUE(is_as_the_page(0));
    EXPECT_EQ(capture_.changed_lines(0), all_lines);
}

class CapturesOfLittleStaging : public Captures {
    void SetUp() override { prepare(few_pages, 1); }
};

TEST_F(CapturesOfLittleStaging, ACopyGivesItsPlaceToAnotherPage)
{
    make_kept_copy_of(5);
    store(5, 2, 8);  // In part, and its copy is told of it: but the place is then that of a later page.
    store_many(9, 300);
    store_many(10, 400);
    EXPECT_EQ(look(ScanMode::stop), 3U);
    ASSERT_EQ(capture_.page_count(), 2U);
    EXPECT_TRUE(capture_.is_staged(0));
    EXPECT_FALSE(capture_.is_staged(1));
    EXPECT_TRUE(is_as_the_page(0));
    EXPECT_EQ(capture_.staged_count(), 1U);
    ASSERT_EQ(capture_.unstaged().size(), 1U);
    EXPECT_EQ(capture_.unstaged()[0], 1U);
    end_epoch();
    store_many(5, 500);
    EXPECT_EQ(look(ScanMode::stop), 1U);
    EXPECT_EQ(capture_.changed_lines(0), all_lines);
    EXPECT_TRUE(is_as_the_page(0));
}

class CapturesOfManyPages : public Captures {
    void SetUp() override { prepare(most_pages, most_pages); }

protected:
    static constexpr std::uint64_t most_pages = 6000;
};

TEST_F(CapturesOfManyPages, CopiesThatAreNotNeededForSecondsAreGivenUp)
{
    for (std::uint64_t page = 0; page + 1 < most_pages; ++page) {
        store_many(page, page);
        store(page, 63, page + 1);  // Once only.
    }
    EXPECT_EQ(look(ScanMode::stop), most_pages - 1);
    end_epoch();
    const std::uint64_t held = capture_.staged_bytes();
    const auto write_little_for = [&](std::uint64_t time_ns) {
        for (const std::uint64_t end_ns = now_ns_ + time_ns; now_ns_ < end_ns;) {
            store_many(7, now_ns_);
            EXPECT_EQ(look(ScanMode::stop), 1U);
            EXPECT_TRUE(is_as_the_page(0));
            end_epoch();
        }
    };
    write_little_for(RecentPeak::period_ns);
    EXPECT_EQ(capture_.staged_bytes(), held);
    write_little_for(RecentPeak::period_ns + 2 * interval_ns);
    EXPECT_LT(capture_.staged_bytes(), held / 100);
    for (std::uint64_t page = 0; page + 1 < most_pages; ++page) {
        store_many(page, 2 * page);
    }
    EXPECT_EQ(look(ScanMode::stop), most_pages - 1);
    for (std::uint64_t i = 0; i < capture_.page_count(); ++i) {
        ASSERT_TRUE(is_as_the_page(i)) << i;
    }
}

TEST_F(CapturesOfManyPages, CopiesAreGivenUpByAProgramThatRests)
{
    for (std::uint64_t page = 0; page + 1 < most_pages; ++page) {
        store_many(page, page);
    }
    EXPECT_EQ(look(ScanMode::background), most_pages - 1);
    end_epoch();
    const std::uint64_t held = capture_.staged_bytes();
    capture_.rest(now_ns_ + RecentPeak::period_ns + 1);
    EXPECT_EQ(capture_.staged_bytes(), held);
    capture_.rest(now_ns_ + 2 * RecentPeak::period_ns + 2);
    EXPECT_EQ(capture_.staged_bytes(), 0U);
    store_many(7, 70);
    EXPECT_EQ(look(ScanMode::stop), 1U);
    EXPECT_TRUE(is_as_the_page(0));
}

TEST_F(Captures, APageWithoutACopyAndAPageThatIsWantedAreWhole)
{
    store(few_pages - 1, 0, 1);
    capture_.want_whole(30);
    EXPECT_EQ(look(ScanMode::background), 2U);
    EXPECT_EQ(capture_.page_count(), 2U);
    EXPECT_EQ(capture_.deltas().line_count, 0U);
}

}  // namespace
}  // namespace stillpoint::pmthreads
