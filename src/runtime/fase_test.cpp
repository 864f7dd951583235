// Invariants: every acquire that succeeded is counted once and every release takes one back; what
// cannot be matched is ignored; a thread's record outlives nothing but its last FASE.

#include "runtime/fase.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/ignored_locks.hpp"
#include "runtime/quiescence.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t one_ms = 1'000'000;

class Fase : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(fase_activate()); }
};

TEST_F(Fase, LastsFromTheOutermostAcquireToTheLastRelease)
{
    int a = 0;
    int b = 0;
    EXPECT_FALSE(inside_fase());
    fase_enter(&a);
    fase_enter(&b);
    fase_leave(&a);
    EXPECT_TRUE(inside_fase());
    fase_leave(&b);
    EXPECT_FALSE(inside_fase());
}

TEST_F(Fase, IgnoresAReleaseThatNoAcquireBegan)
{
    int lock = 0;
    fase_leave(&lock);
    EXPECT_FALSE(inside_fase());
    fase_enter(&lock);
    EXPECT_TRUE(inside_fase());
    fase_leave(&lock);
}

TEST_F(Fase, IsNotCountedBeforeTheAccountingBegins)
{
    fase_deactivate();
    std::jthread([] {
        int lock = 0;
        fase_enter(&lock);
        EXPECT_FALSE(inside_fase());
        EXPECT_TRUE(fase_activate());
        fase_leave(&lock);  // Held since before: ignored.
        EXPECT_FALSE(inside_fase());
        fase_enter(&lock);
        EXPECT_TRUE(inside_fase());
        fase_leave(&lock);
    }).join();
}

TEST_F(Fase, DoesNotBeginWithAnIgnoredLock)
{
    int ignored = 0;
    int counted = 0;
    ASSERT_TRUE(fase_ignore_lock(&ignored));
    ASSERT_TRUE(fase_ignore_lock(&ignored));
    EXPECT_FALSE(fase_ignore_lock(nullptr));
    fase_enter(&ignored);
    EXPECT_FALSE(inside_fase());
    fase_enter(&counted);
    fase_leave(&ignored);
    EXPECT_TRUE(inside_fase());
    EXPECT_FALSE(fase::suspend_for_wait(&ignored));
    fase_leave(&counted);
    EXPECT_FALSE(inside_fase());
    fase_forget_lock(&ignored);
    fase_enter(&ignored);
    EXPECT_TRUE(inside_fase());
    fase_leave(&ignored);
}

TEST_F(Fase, BeginsWithEachLockButTheIgnoredOnesWhateverTheFilterSays)
{
    std::vector<std::uint64_t> locks(4096);
    ASSERT_TRUE(fase_ignore_lock(&locks[0]));
    std::size_t taken_for_ignored = 0;
    for (std::size_t i = 1; i + 1 < locks.size(); ++i) {
        taken_for_ignored += fase::ignored_filter.may_have(&locks[i]) ? 1U : 0U;
        fase_enter(&locks[i]);
        EXPECT_TRUE(inside_fase());
        fase_enter(&locks[0]);
        fase_enter(&locks[i + 1]);
        fase_leave(&locks[i]);
        fase_leave(&locks[0]);
        EXPECT_TRUE(inside_fase());
        fase_leave(&locks[i + 1]);
        EXPECT_FALSE(inside_fase());
    }
    EXPECT_GT(taken_for_ignored, 0U);
    EXPECT_LT(taken_for_ignored, locks.size() / 10);
    fase_forget_lock(&locks[0]);
}

TEST(IgnoredLocks, HoldTheirMaximumAndFindEachAfterRemovals)
{
    IgnoredLocks set;
    std::vector<std::uint64_t> locks(IgnoredLocks::capacity + 1);
    for (std::size_t round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < IgnoredLocks::capacity; ++i) {
            ASSERT_TRUE(set.add(&locks[i]));
        }
        EXPECT_FALSE(set.add(&locks.back()));
        EXPECT_FALSE(set.contains(&locks.back()));
        for (std::size_t i = 0; i < IgnoredLocks::capacity; i += 2) {
            set.remove(&locks[i]);
        }
        for (std::size_t i = 0; i < IgnoredLocks::capacity; ++i) {
            EXPECT_EQ(set.contains(&locks[i]), i % 2 == 1);
        }
    }
}

std::atomic<int> exits{0};

TEST_F(Fase, RecordOfAThreadIsReusedAndTheExitHookRunsOnce)
{
    set_thread_exit_hook([]() noexcept { ++exits; });
    exits = 0;
    ThreadRecord* first = nullptr;
    const auto before = statistics().threads.load();
    for (int i = 0; i < 20; ++i) {
        std::jthread([&first, before] {
            fase_enter(nullptr);
            EXPECT_EQ(statistics().threads.load(), before + 1);
            if (first == nullptr) {
                first = fase::own_record;
            }
            EXPECT_EQ(fase::own_record, first);
            fase_leave(nullptr);
        }).join();
    }
    EXPECT_EQ(exits.load(), 20);
    EXPECT_EQ(statistics().threads.load(), before);
    set_thread_exit_hook(nullptr);
}

TEST_F(Fase, APausedFaseLetsAStopPassAndGoesOn)
{
    std::atomic<std::uint32_t> stage{0};
    std::jthread paused([&] {
        const FaseGuard outer;
        const FaseGuard inner;
        fase_pause();
        stage = 1;
        os::futex_wake(stage);
        while (stage.load() == 1) {
            os::futex_wait(stage, 1);
        }
        fase_resume();
        EXPECT_TRUE(inside_fase());
        stage = 3;
        os::futex_wake(stage);
        while (stage.load() == 3) {
            os::futex_wait(stage, 3);
        }
    });
    while (stage.load() != 1) {
        os::futex_wait(stage, 0);
    }
    EXPECT_TRUE(stop_threads(1000 * one_ms, [](void*) {}, nullptr).reached);
    stage = 2;
    os::futex_wake(stage);
    while (stage.load() != 3) {
        os::futex_wait(stage, 2);
    }
    EXPECT_FALSE(stop_threads(1 * one_ms, [](void*) {}, nullptr).reached);
    stage = 4;
    os::futex_wake(stage);
}

TEST_F(Fase, AThreadThatEndsInAPauseLeavesNothingOfIt)
{
    const ThreadRecord* first = nullptr;
    std::thread([&] {
        fase_enter(nullptr);
        first = fase::own_record;
        fase_pause();
    }).join();
    std::thread([&] {
        const FaseGuard fase;
        EXPECT_EQ(fase::own_record, first);
        fase_pause();
        EXPECT_FALSE(inside_fase());
        fase_resume();
        EXPECT_TRUE(inside_fase());
    }).join();
}

TEST_F(Fase, APauseOutsideAFaseDoesNothing)
{
    fase_pause();
    fase_resume();
    EXPECT_FALSE(inside_fase());
    fase_resume();
    EXPECT_FALSE(inside_fase());
}

TEST_F(Fase, ManyThreadsAtOnceGetTheirOwnRecords)
{
    constexpr int threads = 520;  // More than one chunk of records.
    std::atomic<std::uint32_t> everybody_inside{0};
    std::atomic<int> inside{0};
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&] {
            const FaseGuard fase;
            if (++inside == threads) {
                everybody_inside = 1;
                os::futex_wake(everybody_inside);
            }
            while (everybody_inside.load() == 0) {
                os::futex_wait(everybody_inside, 0);
            }
        });
    }
    all.clear();
    EXPECT_TRUE(stop_threads(1000 * one_ms, [](void*) {}, nullptr).reached);
}

TEST_F(Fase, OfAThreadThatEndsWithALockBlocksUntilThatLockIsReleased)
{
    int lock = 0;
    int thread_id = 0;
    std::jthread([&] {
        thread_id = gettid();
        fase_enter(&lock);
    }).join();
    auto report = stop_threads(one_ms, [](void*) {}, nullptr);
    EXPECT_FALSE(report.reached);
    EXPECT_EQ(report.blocker_lock, &lock);
    EXPECT_EQ(report.blocker_thread_id, thread_id);
    fase_leave(&lock);  // Released by another thread.
    EXPECT_TRUE(stop_threads(1000 * one_ms, [](void*) {}, nullptr).reached);
}

TEST_F(Fase, AStopLastsUntilAThreadThatWasHeldRunsAgain)
{
    struct Facts {
        std::atomic<bool> stopped{false};
        std::atomic<std::uint64_t> resumed_ns{0};
    } facts;
    std::jthread held([&] {
        const int lock = 0;
        while (!facts.stopped) {
            std::this_thread::yield();
        }
        fase_enter(&lock);
        facts.resumed_ns = os::monotonic_ns();
        fase_leave(&lock);
    });
    const std::uint64_t begun_ns = os::monotonic_ns();
    const StopReport stop = stop_threads(
        1000 * one_ms,
        [](void* context) {
            static_cast<Facts*>(context)->stopped = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        },
        &facts);
    ASSERT_TRUE(stop.reached);
    held.join();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // The caller has lost the CPU.
    EXPECT_GE(stop_length_ns(stop), 20 * one_ms);
    EXPECT_LE(stop_length_ns(stop), facts.resumed_ns - begun_ns);
}

TEST_F(Fase, OfAThreadThatEndsWithARobustMutexEndsWithTheThread)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_t mutex;
    pthread_mutex_init(&mutex, &attributes);
    std::jthread([&] {
        for (int i = 0; i < 3; ++i) {
            fase_enter(&mutex);
            pthread_mutex_lock(&mutex);
        }
    }).join();
    EXPECT_TRUE(stop_threads(1000 * one_ms, [](void*) {}, nullptr).reached);
    EXPECT_EQ(pthread_mutex_lock(&mutex), EOWNERDEAD);
    pthread_mutex_consistent(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_destroy(&mutex);
    pthread_mutexattr_destroy(&attributes);
}

TEST_F(Fase, OfOtherThreadsDoesNotExistInAForkedChild)
{
    std::atomic<bool> inside{false};
    std::atomic<bool> finish{false};
    std::jthread holder([&] {
        const FaseGuard fase;
        inside = true;
        while (!finish.load()) {
            std::this_thread::yield();
        }
    });
    while (!inside.load()) {
        std::this_thread::yield();
    }
    const pid_t child = fork();
    if (child == 0) {
        fase_reset_after_fork();
        int lock = 0;
        fase_enter(&lock);
        fase_leave(&lock);
        const bool reached = fase_activate() && stop_threads(1000 * one_ms, [](void*) {}, nullptr).reached;
        _exit(reached ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    finish = true;
}

}  // namespace
}  // namespace stillpoint
