// Turns of a program that writes, and holds of a copier. Invariants:
//   - no turn begins while a copier holds, and no hold begins in a turn;
//   - turns of several threads, and turns inside turns, are one: none of them waits for a hold that came meanwhile;
//   - what a copier or a program held is free when its file is closed.

#include <atomic>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <thread>

#include "media/write_turns.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t short_wait_ns = 20'000'000;
constexpr std::uint64_t long_wait_ns = 5'000'000'000;

class WriteTurnsTest : public testing::Test {
protected:
    WriteTurnsTest()
        : program_(open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)), copier_(open(path().c_str(), O_RDONLY | O_CLOEXEC))
    {
        turns_.honour_holds(program_.get());
    }
    [[nodiscard]] std::string path() const { return directory_.file("pool"); }

    test::TemporaryDirectory directory_;
    os::Descriptor program_;
    os::Descriptor copier_;
    WriteTurns turns_;
};

TEST_F(WriteTurnsTest, AreSeenToBeHonoured)
{
    EXPECT_TRUE(WriteHold::is_honoured(copier_.get()));
    program_.reset();
    EXPECT_FALSE(WriteHold::is_honoured(copier_.get()));
}

TEST_F(WriteTurnsTest, KeepACopierWaitingToTheirEnd)
{
    WriteHold hold(copier_.get());
    turns_.begin();
    turns_.begin();
    EXPECT_FALSE(hold.take(short_wait_ns));
    turns_.end();
    EXPECT_FALSE(hold.take(short_wait_ns));
    turns_.end();
    EXPECT_TRUE(hold.take(short_wait_ns));
}

TEST_F(WriteTurnsTest, WaitForTheEndOfAHold)
{
    WriteHold hold(copier_.get());
    ASSERT_TRUE(hold.take(short_wait_ns));
    std::atomic<bool> has_begun{false};
    std::thread program([&] {
        const WriteTurn turn(turns_);
        has_begun.store(true);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(has_begun.load());
    hold.release();
    program.join();
    EXPECT_TRUE(has_begun.load());
}

TEST_F(WriteTurnsTest, GoOnWhenTheCopierHasEnded)
{
    WriteHold hold(copier_.get());
    ASSERT_TRUE(hold.take(short_wait_ns));
    copier_.reset();
    turns_.begin();
    turns_.end();
}

TEST_F(WriteTurnsTest, DoNotWaitInsideATurnForAHoldThatHasCome)
{
    WriteHold hold(copier_.get());
    turns_.begin();
    std::thread copier([&] { EXPECT_TRUE(hold.take(long_wait_ns)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::thread([&] { const WriteTurn turn(turns_); }).join();
    turns_.end();
    copier.join();
}

TEST_F(WriteTurnsTest, AreHeldBySeveralCopiersAtOnce)
{
    const os::Descriptor second(open(path().c_str(), O_RDONLY | O_CLOEXEC));
    WriteHold one(copier_.get());
    WriteHold other(second.get());
    EXPECT_TRUE(one.take(short_wait_ns));
    EXPECT_TRUE(other.take(short_wait_ns));
}

TEST_F(WriteTurnsTest, NeverOverlapAHold)
{
    std::atomic<bool> ends{false};
    std::atomic<int> in_turn{0};
    const auto work = [&] {
        while (!ends.load()) {
            const WriteTurn turn(turns_);
            in_turn.fetch_add(1);
            in_turn.fetch_sub(1);
        }
    };
    std::thread first(work);
    std::thread second(work);
    for (int i = 0; i < 200; ++i) {
        WriteHold hold(copier_.get());
        ASSERT_TRUE(hold.take(long_wait_ns));
        for (int look = 0; look < 20; ++look) {
            ASSERT_EQ(in_turn.load(), 0);
        }
    }
    ends.store(true);
    first.join();
    second.join();
}

}  // namespace
}  // namespace stillpoint
