// Lists of written lines: each line once in an epoch, as far as a thread remembers it, and in every epoch and pool again.

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "engines/respct/thread.hpp"

namespace stillpoint::respct {
namespace {

constexpr std::uintptr_t first_line = window_base + 4 * mib;

class NotedLines : public ::testing::Test {
protected:
    NotedLines()
    {
        CollectedLines::forget_all();
        begin(7);
    }
    ~NotedLines() override
    {
        CollectedLines::forget_all();
        set_running_epoch(0);
    }
    void begin(std::uint64_t epoch)
    {
        epoch_ = epoch;
        set_running_epoch(epoch);
    }
    static void write(std::uint64_t line, std::size_t bytes = 8)
    {
        note_lines(reinterpret_cast<const void*>(first_line + line * cache_line_bytes), bytes);
    }
    [[nodiscard]] std::vector<std::uintptr_t> noted() const
    {
        std::vector<std::uintptr_t> found;
        CollectedLines(epoch_).for_each_run([&](auto run) {
            for (const std::uintptr_t line : run) {
                found.push_back((line - first_line) / cache_line_bytes);
            }
        });
        return found;
    }
    using Lines = std::vector<std::uintptr_t>;

private:
    std::uint64_t epoch_ = 0;
};

TEST_F(NotedLines, AreNotedOnceInAnEpoch)
{
    write(3);
    write(5, 2 * cache_line_bytes);
    write(3);
    write(6);
    EXPECT_EQ(noted(), (Lines{3, 5, 6}));
}

TEST_F(NotedLines, AreNotedAgainInTheNextEpochAndInTheOneAfter)
{
    for (std::uint64_t epoch = 7; epoch < 10; ++epoch) {
        begin(epoch);
        CollectedLines(epoch).clear();
        write(3);
        EXPECT_EQ(noted(), (Lines{3})) << "epoch " << epoch;
    }
}

TEST_F(NotedLines, AreNotedAgainWhereTheLowerHalfOfAnEpochComesAgain)
{
    write(3);
    begin(7 + (std::uint64_t{1} << 32));
    CollectedLines(7).clear();
    write(3);
    EXPECT_EQ(noted(), (Lines{3}));
}

TEST_F(NotedLines, AreNotedAgainInAnotherPoolThatComesToTheSameEpoch)
{
    write(3);
    CollectedLines::forget_all();
    write(3);
    EXPECT_EQ(noted(), (Lines{3}));
}

TEST_F(NotedLines, ThatShareAPlaceAreToldApart)
{
    write(3);
    write(3 + Thread::recent_count);
    write(3);
    EXPECT_EQ(noted(), (Lines{3, 3 + Thread::recent_count, 3})) << "the place has the last one";
}

}  // namespace
}  // namespace stillpoint::respct
