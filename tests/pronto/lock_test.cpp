// object_lock: readers together, writers alone, sleepers woken, and free in every run but the one that it was acquired in.

#include <atomic>
#include <chrono>
#include <cstring>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stillpoint/pronto_lock.hpp"

namespace {

using stillpoint::pronto::lock_hold;
using stillpoint::pronto::object_lock;
using stillpoint::pronto::shared_hold;
using namespace std::chrono_literals;

constexpr std::uint32_t run = 7;

TEST(ObjectLock, WritersAreAlone)
{
    object_lock lock;
    int writers = 0;
    std::atomic<int> readers{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (int round = 0; round < 2000; ++round) {
                if ((thread + round) % 3 == 0) {
                    const lock_hold hold(lock, run);
                    EXPECT_EQ(readers.load(), 0);
                    ++writers;
                } else {
                    const shared_hold hold(lock, run);
                    readers.fetch_add(1);
                    if (round % 64 == 0) {
                        std::this_thread::yield();
                    }
                    readers.fetch_sub(1);
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(writers, 2667);
}

/// Begins `work` in a thread that has to wait for the lock long enough to sleep; then `release`.
template <class Work, class Release>
void expect_woken(Work work, Release release)
{
    std::atomic<bool> is_done{false};
    std::thread sleeper([&] {
        work();
        is_done = true;
    });
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(is_done);
    release();
    sleeper.join();
}

TEST(ObjectLock, WakesWriterAndReaderThatSleep)
{
    object_lock lock;
    const auto write = [&] { const lock_hold hold(lock, run); };
    const auto read = [&] { const shared_hold hold(lock, run); };
    for (int round = 0; round < 3; ++round) {
        lock.lock(run);
        expect_woken(write, [&] { lock.unlock(); });
        lock.lock(run);
        expect_woken(read, [&] { lock.unlock(); });
        lock.lock_shared(run);
        lock.lock_shared(run);
        expect_woken(write, [&] {
            lock.unlock_shared();
            lock.unlock_shared();
        });
    }
}

TEST(ObjectLock, IsFreeInAnotherRun)
{
    object_lock lock;
    lock.lock(run);
    {
        const lock_hold hold(lock, run + 1);
    }
    {
        const shared_hold hold(lock, run + 1);
    }
    lock.lock_shared(run + 2);
    lock.lock_shared(run + 2);
    lock.lock(run + 3);
    lock.unlock();
    lock.lock_shared(run + 3);
    lock.unlock_shared();
}

TEST(ObjectLock, TakesThePlaceOfASharedMutex)
{
    static_assert(sizeof(object_lock) <= sizeof(std::shared_mutex) && alignof(object_lock) <= alignof(std::shared_mutex));
    std::shared_mutex before;
    before.lock();
    object_lock lock;
    std::memcpy(static_cast<void*>(&lock), static_cast<const void*>(&before), sizeof lock);
    before.unlock();
    const lock_hold hold(lock, run);
}

}  // namespace
