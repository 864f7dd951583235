// Invariants: `stopped` runs only while no thread is inside a FASE; threads outside are never
// waited for; no attempt outlasts its time, so nothing deadlocks; a withdrawn attempt names the thread that was in the way.

#include "runtime/quiescence.hpp"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "os/futex.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t long_attempt = 20'000 * ms;

/// A flag that a thread sleeps on without any lock.
class Signal {
public:
    void set() noexcept
    {
        word_.store(1, std::memory_order_release);
        os::futex_wake(word_);
    }
    void wait() const noexcept
    {
        while (word_.load(std::memory_order_acquire) == 0) {
            os::futex_wait(word_, 0);
        }
    }
    [[nodiscard]] bool is_set() const noexcept { return word_.load(std::memory_order_acquire) != 0; }

private:
    std::atomic<std::uint32_t> word_{0};
};

StopReport stop_and_do_nothing(std::uint64_t attempt_ns)
{
    return stop_threads(attempt_ns, [](void*) {}, nullptr);
}

/// Both ways of ordering publications; the accounting is on.
class Quiescence : public testing::TestWithParam<FaseBarrier> {
protected:
    void SetUp() override { ASSERT_TRUE(fase_activate(GetParam())); }
};

INSTANTIATE_TEST_SUITE_P(Barriers, Quiescence, testing::Values(FaseBarrier::automatic, FaseBarrier::fences));

TEST_P(Quiescence, IsReachedAtOnceWhenNoThreadIsInside)
{
    bool called = false;
    const auto report = stop_threads(long_attempt, [](void* flag) { *static_cast<bool*>(flag) = true; }, &called);
    EXPECT_TRUE(report.reached);
    EXPECT_TRUE(called);
}

TEST_P(Quiescence, DoesNotWaitForAThreadThatSleepsOutsideAFase)
{
    Signal asleep;
    Signal finish;
    std::jthread sleeper([&] {
        fase_enter(&asleep);
        fase_leave(&asleep);
        asleep.set();
        finish.wait();
    });
    asleep.wait();
    EXPECT_TRUE(stop_and_do_nothing(long_attempt).reached);
    finish.set();
}

TEST_P(Quiescence, IsWithdrawnWhileAThreadStaysInsideAndNamesItAndItsOutermostLock)
{
    Signal inside;
    Signal finish;
    int thread_id = 0;
    int outer = 0;
    int inner = 0;
    std::jthread holder([&] {
        thread_id = gettid();
        fase_enter(&outer);
        fase_enter(&inner);
        inside.set();
        finish.wait();
        fase_leave(&inner);
        fase_leave(&outer);
    });
    inside.wait();
    const auto report = stop_and_do_nothing(2 * ms);
    EXPECT_FALSE(report.reached);
    EXPECT_EQ(report.blocker_thread_id, thread_id);
    EXPECT_EQ(report.blocker_lock, &outer);
    finish.set();
    EXPECT_TRUE(stop_and_do_nothing(long_attempt).reached);
}

TEST_P(Quiescence, NeverRunsTheFunctionWhileAFaseWritesItsData)
{
    constexpr int threads = 3;
    constexpr int fases = 4000;
    std::uint64_t halves[threads][2] = {};  // Equal outside FASEs. Not atomic: for the thread sanitizer.
    std::atomic<int> running{threads};
    std::vector<std::jthread> writers;
    for (auto& pair : halves) {
        writers.emplace_back([&pair, &running] {
            for (int i = 0; i < fases; ++i) {
                const FaseGuard outer;
                ++pair[0];
                const FaseGuard inner;
                ++pair[1];
            }
            --running;
        });
    }
    struct Context {
        std::uint64_t (*halves)[2];
        int torn = 0;
    } context{halves};
    int reached = 0;
    do {
        const auto report = stop_threads(
            long_attempt,
            [](void* argument) {
                auto& seen = *static_cast<Context*>(argument);
                for (int i = 0; i < threads; ++i) {
                    seen.torn += seen.halves[i][0] != seen.halves[i][1] ? 1 : 0;
                }
            },
            &context);
        reached += report.reached ? 1 : 0;
        std::this_thread::yield();
    } while (running.load() != 0);
    EXPECT_EQ(context.torn, 0);
    EXPECT_GT(reached, 0);
}

TEST_P(Quiescence, HoldsANewcomerUntilTheStopIsOver)
{
    struct Context {
        Signal about_to_enter;
        std::atomic<bool> entered{false};
        bool entered_during_stop = false;
    } context;
    std::jthread newcomer;
    auto stopped = [](void* argument) {
        auto& shared = *static_cast<Context*>(argument);
        shared.about_to_enter.wait();
        for (int i = 0; i < 100; ++i) {
            std::this_thread::yield();
        }
        shared.entered_during_stop = shared.entered.load();
    };
    Signal start;
    newcomer = std::jthread([&] {
        start.wait();
        while (true) {  // Only the stop shuts the gate: come when it is shut.
            if ((fase::gate.bits.load() & fase::gate_shut) != 0) {
                break;
            }
            std::this_thread::yield();
        }
        context.about_to_enter.set();
        fase_enter(&context);
        context.entered = true;
        fase_leave(&context);
    });
    start.set();
    EXPECT_TRUE(stop_threads(long_attempt, stopped, &context).reached);
    newcomer.join();
    EXPECT_FALSE(context.entered_during_stop);
    EXPECT_TRUE(context.entered.load());
}

TEST_P(Quiescence, IsWithdrawnWhenAThreadInsideBusyWaitsForOneThatIsHeld)
{
    Signal inside;
    std::atomic<bool> other_was_inside{false};
    int lock_a = 0;
    int lock_b = 0;
    std::jthread waiting([&] {
        fase_enter(&lock_a);
        inside.set();
        while (!other_was_inside.load()) {
            std::this_thread::yield();
        }
        fase_leave(&lock_a);
    });
    inside.wait();
    std::jthread held([&] {
        while ((fase::gate.bits.load() & fase::gate_shut) == 0) {
            std::this_thread::yield();
        }
        fase_enter(&lock_b);
        other_was_inside = true;
        fase_leave(&lock_b);
    });
    bool reached = false;
    // As CheckpointTurns: longer and longer pauses, or the held thread might find each gate shut that it wakes up to.
    auto pause = std::chrono::microseconds(100);
    for (int attempt = 0; attempt < 1000 && !reached; ++attempt) {
        reached = stop_and_do_nothing(ms).reached;
        if (!reached) {
            std::this_thread::sleep_for(pause);
            pause = std::min(2 * pause, std::chrono::microseconds(50'000));
        }
    }
    EXPECT_TRUE(reached);
}

TEST_P(Quiescence, LetsNestedLocksOfAThreadInsidePassTheShutGate)
{
    std::atomic<bool> stop{false};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&stop] {
            int outer = 0;
            int inner = 0;
            while (!stop.load()) {
                fase_enter(&outer);
                fase_enter(&inner);
                fase_leave(&outer);  // Hand-over-hand.
                fase_enter(&outer);
                fase_leave(&inner);
                fase_leave(&outer);
                EXPECT_FALSE(inside_fase());
            }
        });
    }
    for (int i = 0; i < 200; ++i) {
        EXPECT_TRUE(stop_and_do_nothing(long_attempt).reached);
    }
    stop = true;
}

TEST_P(Quiescence, HoldsASignalHandlerThatCameBetweenPublicationAndCheck)
{
    Signal attached;
    Signal published;
    std::atomic<bool> in_handler{false};
    struct Context {
        Signal* published;
        std::atomic<bool>* in_handler;
        bool seen = false;
    } context{&published, &in_handler};
    std::jthread thread([&] {
        fase_enter(nullptr);
        fase_leave(nullptr);
        attached.set();
        // Make the state in which a handler can find its thread: published, not confirmed.
        auto& record = *fase::own_record;
        while ((fase::gate.bits.load() & fase::gate_shut) == 0) {
            std::this_thread::yield();
        }
        record.depth.store(1, std::memory_order_relaxed);
        published.set();
        fase_enter(&in_handler);  // The handler's lock.
        in_handler = true;
        fase_leave(&in_handler);
        EXPECT_EQ(record.depth.load(), 1u);
        fase_leave(nullptr);
    });
    attached.wait();
    const auto report = stop_threads(
        long_attempt,
        [](void* argument) {
            auto& shared = *static_cast<Context*>(argument);
            shared.published->wait();
            for (int i = 0; i < 200; ++i) {
                std::this_thread::yield();
            }
            shared.seen = shared.in_handler->load();
        },
        &context);
    EXPECT_TRUE(report.reached);
    EXPECT_FALSE(context.seen);
}

TEST_P(Quiescence, IsNotAttemptedByAThreadThatIsItselfInside)
{
    int lock = 0;
    fase_enter(&lock);
    const auto report = stop_and_do_nothing(long_attempt);
    EXPECT_FALSE(report.reached);
    EXPECT_EQ(report.blocker_lock, &lock);
    EXPECT_EQ(report.blocker_thread_id, gettid());
    fase_leave(&lock);
}

TEST_P(Quiescence, EndsTheFaseForAConditionWaitOnlyWhereThatMutexIsAllThatIsHeld)
{
    int mutex = 0;
    int other = 0;
    fase_enter(&mutex);
    ASSERT_TRUE(fase::suspend_for_wait(&mutex));
    EXPECT_FALSE(inside_fase());
    EXPECT_TRUE(fase::resume_after_wait(&mutex));
    EXPECT_TRUE(inside_fase());
    fase_enter(&other);
    EXPECT_FALSE(fase::suspend_for_wait(&other));
    fase_leave(&mutex);
    EXPECT_TRUE(fase::suspend_for_wait(&other));
    EXPECT_TRUE(fase::resume_after_wait(&other));
    EXPECT_FALSE(fase::suspend_for_wait(&mutex));  // An uncounted mutex beside a counted one.
    fase_leave(&other);
    EXPECT_FALSE(inside_fase());
}

TEST_P(Quiescence, DoesNotLetAWaiterBackInsideDuringAStop)
{
    int mutex = 0;
    fase_enter(&mutex);
    ASSERT_TRUE(fase::suspend_for_wait(&mutex));
    bool resumed = true;
    struct Context {
        int* mutex;
        bool* resumed;
    } context{&mutex, &resumed};
    EXPECT_TRUE(stop_threads(
                    long_attempt,
                    [](void* argument) {
                        auto& shared = *static_cast<Context*>(argument);
                        *shared.resumed = fase::resume_after_wait(shared.mutex);
                    },
                    &context)
                    .reached);
    EXPECT_FALSE(resumed);
    EXPECT_TRUE(fase::resume_after_wait(&mutex));
    fase_leave(&mutex);
}

}  // namespace
}  // namespace stillpoint
