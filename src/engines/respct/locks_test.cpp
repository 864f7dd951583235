// The one-word locks, without a pool: exclusion, waiters, and what the calling thread is known to hold. Threads take both ways, the short
// one of respct.h and the long one of the library.

#include "engines/respct/locks.hpp"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stillpoint/respct.hpp"

namespace stillpoint::respct {
namespace {

TEST(RespctLocks, OneThreadAtATimeHoldsAMutexWhicheverWayItTakes)
{
    mutex guard;
    long count = 0;  // TSan: not atomic
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            choose_way_of_locks(thread % 2 == 0);
            for (int i = 0; i < 20'000; ++i) {
                if (i % 7 == 0 && guard.try_lock()) {
                    ++count;
                    guard.unlock();
                } else {
                    const std::lock_guard hold(guard);
                    ++count;
                }
            }
            EXPECT_EQ(locks_counted(), 0U);
            choose_way_of_locks(false);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(count, 80'000);
    EXPECT_EQ(guard.native_handle()->state, 0U);
}

TEST(RespctLocks, AreCounted)
{
    for (const bool short_way : {true, false}) {
        choose_way_of_locks(short_way);
        mutex one;
        mutex other;
        one.lock();
        EXPECT_TRUE(other.try_lock());
        EXPECT_FALSE(other.try_lock());
        EXPECT_EQ(locks_counted(), 2U);
        choose_way_of_locks(!short_way);  // A held lock stays so.
        one.unlock();
        EXPECT_EQ(locks_counted(), 1U);
        other.unlock();
        EXPECT_EQ(locks_counted(), 0U);
    }
    choose_way_of_locks(false);
}

TEST(RespctLocks, AWaiterSeesWhatItWasNotifiedOf)
{
    constexpr int rounds = 3000;
    mutex guard;
    condition changed;
    int put = 0;
    int taken = 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
        threads.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                critical_section section(1, guard);
                section.wait(changed, [&] { return put > taken; });
                ++taken;
                changed.notify_all();
            }
        });
    }
    for (int i = 0; i < 2 * rounds; ++i) {
        critical_section section(2, guard);
        section.wait(changed, [&] { return put - taken < 3; });
        ++put;
        i % 2 == 0 ? changed.notify_one() : changed.notify_all();
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(taken, 2 * rounds);
    EXPECT_EQ(put, 2 * rounds);
}

TEST(RespctLocks, ANotificationOfNobodyMakesNoSystemCallNecessary)
{
    condition changed;
    changed.notify_one();
    changed.notify_all();
    EXPECT_EQ(changed.native_handle()->changes, 0U);
}

TEST(RespctLocksDeathTest, UnlockOfAFreeMutexIsTold)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    mutex guard;
    EXPECT_DEATH(guard.unlock(), "no thread holds this mutex");
}

}  // namespace
}  // namespace stillpoint::respct
