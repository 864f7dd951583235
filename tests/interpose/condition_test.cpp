// Invariants: a condition wait ends the FASE only where its mutex is all that is held; a thread that returns
// from one, or is cancelled in one, is inside again before it can write; no thread waits forever.

#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <thread>
#include <threads.h>

#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/quiescence.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t ms = 1'000'000;

bool reach(std::uint64_t attempt_ns, void (*stopped)(void*) = [](void*) {}, void* context = nullptr)
{
    return stop_threads(attempt_ns, stopped, context).reached;
}

/// Tries as an engine does: many short attempts.
bool reach_in_time()
{
    for (int i = 0; i < 10'000; ++i) {
        if (reach(ms)) {
            return true;
        }
    }
    return false;
}

timespec in(clockid_t clock, long milliseconds)
{
    timespec when{};
    clock_gettime(clock, &when);
    when.tv_nsec += milliseconds * 1'000'000;
    when.tv_sec += when.tv_nsec / 1'000'000'000;
    when.tv_nsec %= 1'000'000'000;
    return when;
}

class ConditionWait : public testing::Test {
public:  // The C callbacks below look in.
    void SetUp() override { ASSERT_TRUE(fase_activate()); }
    void TearDown() override { EXPECT_FALSE(inside_fase()); }

    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    bool ready = false;
    std::atomic<bool> waiting{false};

    void wait_until_ready()
    {
        while (!ready) {
            waiting = true;
            pthread_cond_wait(&condition, &mutex);
            EXPECT_TRUE(inside_fase());
        }
    }
    void make_ready()
    {
        pthread_mutex_lock(&mutex);
        ready = true;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
    }
};

TEST_F(ConditionWait, OfAThreadThatHoldsNothingElseDoesNotStopCheckpoints)
{
    std::jthread waiter([this] {
        pthread_mutex_lock(&mutex);
        wait_until_ready();
        EXPECT_TRUE(inside_fase());
        pthread_mutex_unlock(&mutex);
        EXPECT_FALSE(inside_fase());
    });
    while (!waiting) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(reach_in_time());
    make_ready();
}

TEST_F(ConditionWait, StaysInsideWithAnotherLockHeld)
{
    std::jthread waiter([this] {
        pthread_mutex_lock(&other);
        pthread_mutex_lock(&mutex);
        wait_until_ready();
        pthread_mutex_unlock(&mutex);
        pthread_mutex_unlock(&other);
    });
    while (!waiting) {
        std::this_thread::yield();
    }
    const auto report = stop_threads(2 * ms, [](void*) {}, nullptr);
    EXPECT_FALSE(report.reached);
    EXPECT_EQ(report.blocker_lock, &other);
    make_ready();
}

TEST_F(ConditionWait, ReturnsInsideAfterATimeout)
{
    pthread_mutex_lock(&mutex);
    const auto realtime = in(CLOCK_REALTIME, 1);
    EXPECT_EQ(pthread_cond_timedwait(&condition, &mutex, &realtime), ETIMEDOUT);
    EXPECT_TRUE(inside_fase());
    const auto monotonic = in(CLOCK_MONOTONIC, 1);
    EXPECT_EQ(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &monotonic), ETIMEDOUT);
    EXPECT_TRUE(inside_fase());
    const timespec invalid{0, -1};
    EXPECT_EQ(pthread_cond_timedwait(&condition, &mutex, &invalid), EINVAL);
    EXPECT_TRUE(inside_fase());
    pthread_mutex_unlock(&mutex);
}

TEST_F(ConditionWait, ThatIsWokenDuringAStopDoesNotGetInsideBeforeItsEnd)
{
    std::atomic<bool> inside{false};
    std::jthread waiter([&] {
        pthread_mutex_lock(&mutex);
        wait_until_ready();
        inside = true;
        pthread_mutex_unlock(&mutex);
    });
    while (!waiting) {
        std::this_thread::yield();
    }
    struct Context {
        ConditionWait* test;
        std::atomic<bool>* inside;
        bool seen = false;
    } context{this, &inside};
    const auto wake = [](void* argument) {
        auto& shared = *static_cast<Context*>(argument);
        // No thread holds the mutex: a store without it is as good, and the stop may not lock.
        shared.test->ready = true;
        pthread_cond_broadcast(&shared.test->condition);
        for (int i = 0; i < 2000; ++i) {
            std::this_thread::yield();
        }
        shared.seen = shared.inside->load();
    };
    bool reached = false;
    while (!reached) {
        reached = reach(ms, wake, &context);
    }
    EXPECT_FALSE(context.seen);
    waiter.join();
    EXPECT_TRUE(inside);
}

TEST_F(ConditionWait, KeepsAQueueWholeWhileCheckpointsComeAndGo)
{
    constexpr int items = 3000;
    int queued = 0;
    std::uint64_t halves[2] = {};
    int consumed = 0;
    std::mutex lock;
    std::condition_variable_any not_empty;
    std::condition_variable not_full;
    std::atomic<int> running{2};
    std::jthread producer([&] {
        for (int i = 0; i < items; ++i) {
            std::unique_lock guard{lock};
            not_full.wait(guard, [&] { return queued < 4; });
            ++halves[0];
            ++queued;
            ++halves[1];
            not_empty.notify_one();
        }
        --running;
    });
    std::jthread consumer([&] {
        while (consumed < items) {
            std::unique_lock guard{lock};
            not_empty.wait(guard, [&] { return queued > 0; });
            ++halves[0];
            --queued;
            ++consumed;
            ++halves[1];
            not_full.notify_one();
        }
        --running;
    });
    int torn = 0;
    struct Context {
        std::uint64_t* halves;
        int* torn;
    } context{halves, &torn};
    while (running != 0) {
        (void)reach(
            5 * ms,
            [](void* argument) {
                auto& seen = *static_cast<Context*>(argument);
                *seen.torn += seen.halves[0] != seen.halves[1] ? 1 : 0;
            },
            &context);
        std::this_thread::yield();
    }
    producer.join();
    consumer.join();
    EXPECT_EQ(consumed, items);
    EXPECT_EQ(torn, 0);
}

TEST_F(ConditionWait, ThatIsCancelledIsInsideForItsCleanupHandlers)
{
    struct Context {
        ConditionWait* test;
        bool inside_in_handler = false;
    } context{this};
    pthread_t thread{};
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void* argument) -> void* {
                      auto& shared = *static_cast<Context*>(argument);
                      pthread_mutex_lock(&shared.test->mutex);
                      pthread_cleanup_push(
                          [](void* handed) {
                              auto& in_handler = *static_cast<Context*>(handed);
                              in_handler.inside_in_handler = inside_fase();
                              pthread_mutex_unlock(&in_handler.test->mutex);
                          },
                          argument);
                      shared.test->wait_until_ready();
                      pthread_cleanup_pop(1);
                      return nullptr;
                  },
                  &context),
              0);
    while (!waiting) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(reach_in_time());  // The waiter is in the wait now.
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_TRUE(context.inside_in_handler);
    EXPECT_TRUE(reach(1000 * ms));
    EXPECT_EQ(pthread_mutex_trylock(&mutex), 0);
    pthread_mutex_unlock(&mutex);
}

TEST_F(ConditionWait, OfC11EndsAndResumesTheFase)
{
    mtx_t c11_mutex;
    cnd_t c11_condition;
    ASSERT_EQ(mtx_init(&c11_mutex, mtx_plain), thrd_success);
    ASSERT_EQ(cnd_init(&c11_condition), thrd_success);
    bool go = false;
    std::jthread waiter([&] {
        mtx_lock(&c11_mutex);
        while (!go) {
            waiting = true;
            cnd_wait(&c11_condition, &c11_mutex);
            EXPECT_TRUE(inside_fase());
        }
        mtx_unlock(&c11_mutex);
    });
    while (!waiting) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(reach_in_time());
    mtx_lock(&c11_mutex);
    go = true;
    cnd_signal(&c11_condition);
    const auto deadline = in(CLOCK_REALTIME, 1);
    const int timed = cnd_timedwait(&c11_condition, &c11_mutex, &deadline);
    EXPECT_EQ(timed, thrd_timedout);
    EXPECT_TRUE(inside_fase());
    mtx_unlock(&c11_mutex);
    waiter.join();
    cnd_destroy(&c11_condition);
    mtx_destroy(&c11_mutex);
}

void make_robust(pthread_mutex_t& mutex)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

TEST_F(ConditionWait, ThatMakesARobustMutexUnusableLeavesTheThreadOutside)
{
    pthread_mutex_t robust;
    make_robust(robust);
    std::jthread([&] { pthread_mutex_lock(&robust); }).join();
    ASSERT_EQ(pthread_mutex_lock(&robust), EOWNERDEAD);
    // Not consistent: the wait's release makes it unusable, and libc says so.
    const auto deadline = in(CLOCK_REALTIME, 1);
    EXPECT_EQ(pthread_cond_timedwait(&condition, &robust, &deadline), ENOTRECOVERABLE);
    EXPECT_FALSE(inside_fase());
    pthread_mutex_destroy(&robust);
}

TEST_F(ConditionWait, ThatInheritsARobustMutexDuringAStopKeepsItUntilTheStopIsOver)
{
    pthread_mutex_t robust;
    make_robust(robust);
    std::atomic<int> result{-1};
    std::jthread waiter([&] {
        pthread_mutex_lock(&robust);
        waiting = true;
        result = pthread_cond_wait(&condition, &robust);
        EXPECT_TRUE(inside_fase());
        EXPECT_EQ(pthread_mutex_consistent(&robust), 0);
        pthread_mutex_unlock(&robust);
    });
    while (!waiting) {
        std::this_thread::yield();
    }
    std::atomic<bool> held{false};
    std::jthread owner([&] {
        pthread_mutex_lock(&robust);  // Free once the waiter waits.
        pthread_cond_signal(&condition);
        held = true;
        // The wait ends, with the mutex, while a stop waits for it: the waiter wakes up in that stop.
        while ((fase::gate.bits.load() & fase::gate_shut) == 0) {
            std::this_thread::yield();
        }
    });
    while (!held) {
        std::this_thread::yield();
    }
    struct Context {
        std::atomic<int>* result;
        bool returned = false;
    } context{&result};
    EXPECT_TRUE(reach(
        20'000 * ms,
        [](void* argument) {
            auto& shared = *static_cast<Context*>(argument);
            for (int i = 0; i < 2000; ++i) {
                std::this_thread::yield();
            }
            shared.returned = shared.result->load() != -1;
        },
        &context));
    waiter.join();
    EXPECT_EQ(result, EOWNERDEAD);
    EXPECT_FALSE(context.returned);
    EXPECT_EQ(pthread_mutex_lock(&robust), 0);
    pthread_mutex_unlock(&robust);
    pthread_mutex_destroy(&robust);
}

TEST_F(ConditionWait, BarriersAndSemaphoresDoNotChangeTheCount)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, nullptr, 1);
    sem_t semaphore;
    sem_init(&semaphore, 0, 3);
    pthread_mutex_lock(&mutex);
    EXPECT_EQ(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    EXPECT_EQ(sem_wait(&semaphore), 0);
    const auto deadline = in(CLOCK_REALTIME, 1);
    EXPECT_EQ(sem_timedwait(&semaphore, &deadline), 0);
    const auto monotonic = in(CLOCK_MONOTONIC, 1);
    EXPECT_EQ(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &monotonic), 0);
    EXPECT_EQ(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &monotonic), -1);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_TRUE(inside_fase());
    pthread_mutex_unlock(&mutex);
    sem_destroy(&semaphore);
    pthread_barrier_destroy(&barrier);
}

}  // namespace
}  // namespace stillpoint
