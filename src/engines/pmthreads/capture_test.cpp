// Invariants of captures: a page of which few lines were written gives those lines, as they are at the last look that found them; one with
// many gives itself, in this epoch and the next; one that gave lines before it was taken whole is told.

#include <cstring>
#include <gtest/gtest.h>
#include <memory>

#include "core/store_marks.hpp"
#include "engines/pmthreads/capture.hpp"

namespace stillpoint::pmthreads {
namespace {

constexpr std::uint64_t pages = 256;

class Captures : public testing::Test {
protected:
    void SetUp() override
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
        ASSERT_TRUE(capture_.reserve(pages, pages, &log_, &table_));
        ASSERT_TRUE(team_.start());
    }

    void store(std::uint64_t page, std::uint64_t line, std::uint64_t value)
    {
        std::byte* const at = shadow_.base() + page * page_bytes + line * cache_line_bytes;
        std::memcpy(at, &value, sizeof value);
        note_store(at, sizeof value);
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
    EXPECT_EQ(std::memcmp(capture_.staged(0), shadow_.page(10), page_bytes), 0);
}

TEST_F(Captures, APageOfManyLinesIsWholeAtOnceInTheNextEpochAndInPartAfterIt)
{
    for (std::uint64_t line = 0; line < 40; ++line) {
        store(5, line, line);
    }
    EXPECT_EQ(look(ScanMode::stop), 1U);
    EXPECT_EQ(capture_.page_count(), 1U);
    for (const std::uint64_t whole : {1U, 0U}) {
        capture_.clear();
        tracker_->epoch_captured();
        store(5, 1, 7);
        EXPECT_EQ(look(ScanMode::stop), 1U);
        EXPECT_EQ(capture_.page_count(), whole);
        EXPECT_EQ(capture_.deltas().line_count, 1 - whole);
    }
}

TEST_F(Captures, APageWithoutACopyAndAPageThatIsWantedAreWhole)
{
    store(pages - 1, 0, 1);
    capture_.want_whole(30);
    EXPECT_EQ(look(ScanMode::background), 2U);
    EXPECT_EQ(capture_.page_count(), 2U);
    EXPECT_EQ(capture_.deltas().line_count, 0U);
}

}  // namespace
}  // namespace stillpoint::pmthreads
