#include "engines/pmthreads/advice.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

#include "core/units.hpp"
#include "engines/pmthreads/own_statistics.hpp"

namespace stillpoint::pmthreads {
namespace {

/// A run without a fault: 100 checkpoints of 100 pages each, in 1 GiB.
class Advice : public ::testing::Test {
protected:
    Advice()
    {
        page_->checkpoints = 100;
        page_->dirty_pages_total = 10'000;
        page_->image_bytes = 1024 * mib;
        page_->stop_ns_p99 = 1'000'000;
        page_->stop_ns_last = 1'000'000;
        own(OwnStatistic::precopied_pages_total) = 9'000;
        own(OwnStatistic::tracker) = static_cast<std::uint64_t>(TrackerNumber::uffd);
    }
    std::atomic<std::uint64_t>& own(OwnStatistic word) { return page_->engine_words[static_cast<std::size_t>(word)]; }
    [[nodiscard]] std::string text() const { return advice(*page_); }
    [[nodiscard]] bool says(std::string_view words) const { return text().find(words) != std::string::npos; }

    std::unique_ptr<Statistics> page_ = std::make_unique<Statistics>();
};

TEST_F(Advice, ARunWithoutAFaultGetsNone) { EXPECT_EQ(text(), ""); }

TEST_F(Advice, AFewCheckpointsShowNothing)
{
    page_->checkpoints = 9;
    page_->stop_ns_p99 = 500'000'000;
    EXPECT_EQ(text(), "");
}

TEST_F(Advice, ThreadsThatStayInSectionsComeFirst)
{
    page_->withdrawn_attempts = 101;
    page_->stretched_intervals = 100;
    EXPECT_TRUE(says("sp_lock_ignore")) << text();
}

TEST_F(Advice, ASlowMedium)
{
    page_->stretched_intervals = 26;
    EXPECT_TRUE(says("26 times in 100 checkpoints")) << text();
}

TEST_F(Advice, LongStopsNameWhatTakesTheTime)
{
    page_->stop_ns_p99 = 90'000'000;
    page_->stop_ns_last = 80'000'000;
    page_->quiesce_ns_last = 70'000'000;
    EXPECT_TRUE(says("90 ms (99th percentile), most of it until every thread")) << text();
    page_->quiesce_ns_last = 1'000'000;
    EXPECT_TRUE(says("leave a CPU free")) << text();
    own(OwnStatistic::precopied_pages_total) = 0;
    EXPECT_TRUE(says("shorter --interval")) << text();
    own(OwnStatistic::tracker) = static_cast<std::uint64_t>(TrackerNumber::hooks);
    EXPECT_TRUE(says("or --tracker=uffd")) << text();
}

TEST_F(Advice, PagesThatEndAsTheyBegan)
{
    page_->dirty_pages_total = 1'000'000;
    own(OwnStatistic::unchanged_pages_total) = 600'000;
    EXPECT_TRUE(says("of some 10000 pages that are written in an interval 6000 end as they began")) << text();
}

TEST_F(Advice, FaultsOfEachTracker)
{
    page_->dirty_pages_total = 1'000'000;
    EXPECT_TRUE(says("costs a page fault")) << text();
    own(OwnStatistic::tracker) = static_cast<std::uint64_t>(TrackerNumber::mprotect);
    EXPECT_TRUE(says("costs a signal")) << text();
    own(OwnStatistic::tracker) = static_cast<std::uint64_t>(TrackerNumber::hooks);
    EXPECT_EQ(text(), "");
}

TEST_F(Advice, MostOfTheMemoryIsWrittenEachTime)
{
    own(OwnStatistic::tracker) = static_cast<std::uint64_t>(TrackerNumber::hooks);
    page_->dirty_pages_total = 1'000'000;
    page_->image_bytes = 64 * mib;
    EXPECT_TRUE(says("10000 of 16384 pages")) << text();
}

}  // namespace
}  // namespace stillpoint::pmthreads
