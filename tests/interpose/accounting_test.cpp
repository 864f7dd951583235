// Invariants: a call that acquired is counted once, a call that released takes one back, every
// other result of libc comes through unchanged and leaves the count as it was.

#include <cerrno>
#include <ctime>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <pthread.h>
#include <shared_mutex>
#include <thread>
#include <threads.h>

#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/quiescence.hpp"

namespace stillpoint {
namespace {

int depth()
{
    const auto* record = fase::own_record;
    return record == nullptr ? 0 : static_cast<int>(record->depth.load());
}

struct Step {
    const char* call;
    std::function<int()> run;
    int result;
    int change;
};

void expect_steps(std::initializer_list<Step> steps)
{
    for (const auto& step : steps) {
        const int before = depth();
        EXPECT_EQ(step.run(), step.result) << step.call;
        EXPECT_EQ(depth() - before, step.change) << step.call;
    }
    EXPECT_EQ(depth(), 0);
}

/// Runs each step in a thread of its own, which holds nothing at its end.
int elsewhere(const std::function<int()>& call)
{
    int result = -1;
    std::jthread([&] {
        result = call();
        EXPECT_EQ(depth(), 0);
    }).join();
    return result;
}

timespec in_the_past(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    --now.tv_sec;
    return now;
}

timespec soon(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    now.tv_sec += 10;
    return now;
}

class Accounting : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(fase_activate()); }
};

struct Mutex {
    explicit Mutex(int type, int robust = PTHREAD_MUTEX_STALLED)
    {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, type);
        pthread_mutexattr_setrobust(&attributes, robust);
        pthread_mutex_init(&mutex, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
    ~Mutex() { pthread_mutex_destroy(&mutex); }
    pthread_mutex_t mutex{};
};

TEST_F(Accounting, CountsEveryWayToLockAMutexOfEveryKind)
{
    const auto realtime = soon(CLOCK_REALTIME);
    const auto monotonic = soon(CLOCK_MONOTONIC);
    constexpr int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ADAPTIVE_NP};
    for (const int type : types) {
        for (const int robust : {PTHREAD_MUTEX_STALLED, PTHREAD_MUTEX_ROBUST}) {
            Mutex m{type, robust};
            const auto unlock = [&] { return pthread_mutex_unlock(&m.mutex); };
            expect_steps({
                {"lock", [&] { return pthread_mutex_lock(&m.mutex); }, 0, 1},
                {"unlock", unlock, 0, -1},
                {"trylock", [&] { return pthread_mutex_trylock(&m.mutex); }, 0, 1},
                {"unlock", unlock, 0, -1},
                {"timedlock", [&] { return pthread_mutex_timedlock(&m.mutex, &realtime); }, 0, 1},
                {"unlock", unlock, 0, -1},
                {"clocklock", [&] { return pthread_mutex_clocklock(&m.mutex, CLOCK_MONOTONIC, &monotonic); }, 0, 1},
                {"unlock", unlock, 0, -1},
            });
        }
    }
}

TEST_F(Accounting, DoesNotCountAMutexThatIsBusyOrTimesOut)
{
    Mutex m{PTHREAD_MUTEX_NORMAL};
    const auto past = in_the_past(CLOCK_REALTIME);
    pthread_mutex_lock(&m.mutex);
    EXPECT_EQ(elsewhere([&] { return pthread_mutex_trylock(&m.mutex); }), EBUSY);
    EXPECT_EQ(elsewhere([&] { return pthread_mutex_timedlock(&m.mutex, &past); }), ETIMEDOUT);
    EXPECT_EQ(elsewhere([&] { return pthread_mutex_clocklock(&m.mutex, CLOCK_REALTIME, &past); }), ETIMEDOUT);
    EXPECT_EQ(elsewhere([&] { return pthread_mutex_clocklock(&m.mutex, 77, &past); }), EINVAL);
    EXPECT_EQ(depth(), 1);
    pthread_mutex_unlock(&m.mutex);
    EXPECT_EQ(depth(), 0);
}

TEST_F(Accounting, DoesNotCountErrorsOfAnErrorCheckingMutex)
{
    Mutex m{PTHREAD_MUTEX_ERRORCHECK};
    expect_steps({
        {"unlock of a free one", [&] { return pthread_mutex_unlock(&m.mutex); }, EPERM, 0},
        {"lock", [&] { return pthread_mutex_lock(&m.mutex); }, 0, 1},
        {"lock again", [&] { return pthread_mutex_lock(&m.mutex); }, EDEADLK, 0},
        {"unlock elsewhere", [&] { return elsewhere([&] { return pthread_mutex_unlock(&m.mutex); }); }, EPERM, 0},
        {"unlock", [&] { return pthread_mutex_unlock(&m.mutex); }, 0, -1},
    });
}

TEST_F(Accounting, CountsEachLevelOfARecursiveMutex)
{
    Mutex m{PTHREAD_MUTEX_RECURSIVE};
    expect_steps({
        {"lock", [&] { return pthread_mutex_lock(&m.mutex); }, 0, 1},
        {"lock", [&] { return pthread_mutex_lock(&m.mutex); }, 0, 1},
        {"trylock", [&] { return pthread_mutex_trylock(&m.mutex); }, 0, 1},
        {"unlock", [&] { return pthread_mutex_unlock(&m.mutex); }, 0, -1},
        {"unlock", [&] { return pthread_mutex_unlock(&m.mutex); }, 0, -1},
        {"unlock", [&] { return pthread_mutex_unlock(&m.mutex); }, 0, -1},
        {"unlock of a free one", [&] { return pthread_mutex_unlock(&m.mutex); }, EPERM, 0},
    });
}

TEST_F(Accounting, CountsARobustMutexOfADeadOwnerButNotOneThatIsNotRecoverable)
{
    Mutex m{PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST};
    std::jthread([&] { pthread_mutex_lock(&m.mutex); }).join();
    EXPECT_TRUE(stop_threads(1'000'000'000, [](void*) {}, nullptr).reached);
    expect_steps({
        {"lock", [&] { return pthread_mutex_lock(&m.mutex); }, EOWNERDEAD, 1},
        {"unlock without consistent", [&] { return pthread_mutex_unlock(&m.mutex); }, 0, -1},
        {"lock", [&] { return pthread_mutex_lock(&m.mutex); }, ENOTRECOVERABLE, 0},
        {"trylock", [&] { return pthread_mutex_trylock(&m.mutex); }, ENOTRECOVERABLE, 0},
    });
}

TEST_F(Accounting, GivesLibcsOwnErrorForAnInvalidMutex)
{
    pthread_mutex_t invalid = PTHREAD_MUTEX_INITIALIZER;
    invalid.__data.__kind = 7;
    expect_steps({
        {"lock", [&] { return pthread_mutex_lock(&invalid); }, EINVAL, 0},
        {"trylock", [&] { return pthread_mutex_trylock(&invalid); }, EINVAL, 0},
        {"unlock", [&] { return pthread_mutex_unlock(&invalid); }, EINVAL, 0},
    });
}

TEST_F(Accounting, CountsNestedMutexesInAnyOrderOfRelease)
{
    Mutex a{PTHREAD_MUTEX_NORMAL};
    Mutex b{PTHREAD_MUTEX_NORMAL};
    expect_steps({
        {"lock a", [&] { return pthread_mutex_lock(&a.mutex); }, 0, 1},
        {"lock b", [&] { return pthread_mutex_lock(&b.mutex); }, 0, 1},
        {"unlock a", [&] { return pthread_mutex_unlock(&a.mutex); }, 0, -1},
        {"unlock b", [&] { return pthread_mutex_unlock(&b.mutex); }, 0, -1},
    });
}

TEST_F(Accounting, CountsEveryWayToLockAReadWriteLock)
{
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    const auto realtime = soon(CLOCK_REALTIME);
    const auto monotonic = soon(CLOCK_MONOTONIC);
    const auto unlock = [&] { return pthread_rwlock_unlock(&l); };
    expect_steps({
        {"rdlock", [&] { return pthread_rwlock_rdlock(&l); }, 0, 1},
        {"rdlock again", [&] { return pthread_rwlock_rdlock(&l); }, 0, 1},
        {"tryrdlock", [&] { return pthread_rwlock_tryrdlock(&l); }, 0, 1},
        {"timedrdlock", [&] { return pthread_rwlock_timedrdlock(&l, &realtime); }, 0, 1},
        {"clockrdlock", [&] { return pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &monotonic); }, 0, 1},
        {"trywrlock", [&] { return pthread_rwlock_trywrlock(&l); }, EBUSY, 0},
        {"unlock", unlock, 0, -1},
        {"unlock", unlock, 0, -1},
        {"unlock", unlock, 0, -1},
        {"unlock", unlock, 0, -1},
        {"unlock", unlock, 0, -1},
        {"wrlock", [&] { return pthread_rwlock_wrlock(&l); }, 0, 1},
        {"rdlock of a writer", [&] { return pthread_rwlock_rdlock(&l); }, EDEADLK, 0},
        {"wrlock of a writer", [&] { return pthread_rwlock_wrlock(&l); }, EDEADLK, 0},
        {"tryrdlock", [&] { return pthread_rwlock_tryrdlock(&l); }, EBUSY, 0},
        {"unlock", unlock, 0, -1},
        {"trywrlock", [&] { return pthread_rwlock_trywrlock(&l); }, 0, 1},
        {"unlock", unlock, 0, -1},
        {"timedwrlock", [&] { return pthread_rwlock_timedwrlock(&l, &realtime); }, 0, 1},
        {"unlock", unlock, 0, -1},
        {"clockwrlock", [&] { return pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &monotonic); }, 0, 1},
        {"unlock", unlock, 0, -1},
    });
}

TEST_F(Accounting, DoesNotCountAReadWriteLockThatTimesOut)
{
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    const auto past = in_the_past(CLOCK_REALTIME);
    pthread_rwlock_wrlock(&l);
    EXPECT_EQ(elsewhere([&] { return pthread_rwlock_timedrdlock(&l, &past); }), ETIMEDOUT);
    EXPECT_EQ(elsewhere([&] { return pthread_rwlock_timedwrlock(&l, &past); }), ETIMEDOUT);
    EXPECT_EQ(elsewhere([&] { return pthread_rwlock_clockrdlock(&l, CLOCK_REALTIME, &past); }), ETIMEDOUT);
    EXPECT_EQ(elsewhere([&] { return pthread_rwlock_clockwrlock(&l, CLOCK_REALTIME, &past); }), ETIMEDOUT);
    pthread_rwlock_unlock(&l);
    EXPECT_EQ(depth(), 0);
}

TEST_F(Accounting, CountsSpinlocks)
{
    pthread_spinlock_t l{};
    pthread_spin_init(&l, PTHREAD_PROCESS_PRIVATE);
    expect_steps({
        {"lock", [&] { return pthread_spin_lock(&l); }, 0, 1},
        {"trylock", [&] { return pthread_spin_trylock(&l); }, EBUSY, 0},
        {"unlock", [&] { return pthread_spin_unlock(&l); }, 0, -1},
        {"trylock", [&] { return pthread_spin_trylock(&l); }, 0, 1},
        {"unlock", [&] { return pthread_spin_unlock(&l); }, 0, -1},
    });
    pthread_spin_destroy(&l);
}

TEST_F(Accounting, CountsC11Mutexes)
{
    mtx_t m;
    ASSERT_EQ(mtx_init(&m, mtx_timed | mtx_recursive), thrd_success);
    const auto past = in_the_past(CLOCK_REALTIME);
    expect_steps({
        {"lock", [&] { return mtx_lock(&m); }, thrd_success, 1},
        {"trylock", [&] { return mtx_trylock(&m); }, thrd_success, 1},
        {"timedlock", [&] { return mtx_timedlock(&m, &past); }, thrd_success, 1},
        {"trylock elsewhere", [&] { return elsewhere([&] { return mtx_trylock(&m); }); }, thrd_busy, 0},
        {"timedlock elsewhere", [&] { return elsewhere([&] { return mtx_timedlock(&m, &past); }); }, thrd_timedout, 0},
        {"unlock", [&] { return mtx_unlock(&m); }, thrd_success, -1},
        {"unlock", [&] { return mtx_unlock(&m); }, thrd_success, -1},
        {"unlock", [&] { return mtx_unlock(&m); }, thrd_success, -1},
        {"unlock of a free one", [&] { return mtx_unlock(&m); }, thrd_error, 0},
    });
    mtx_destroy(&m);
}

TEST_F(Accounting, CountsTheStandardLibrarysLocks)
{
    std::mutex plain;
    std::recursive_mutex recursive;
    std::shared_timed_mutex shared;
    {
        const std::scoped_lock both{plain, recursive};
        EXPECT_EQ(depth(), 2);
        const std::shared_lock reader{shared};
        EXPECT_EQ(depth(), 3);
    }
    EXPECT_EQ(depth(), 0);
}

TEST_F(Accounting, CountsAnIgnoredLockAgainOnceItWasDestroyed)
{
    Mutex m{PTHREAD_MUTEX_NORMAL};
    ASSERT_TRUE(fase_ignore_lock(&m.mutex));
    expect_steps({
        {"lock", [&] { return pthread_mutex_lock(&m.mutex); }, 0, 0},
        {"unlock", [&] { return pthread_mutex_unlock(&m.mutex); }, 0, 0},
        {"destroy", [&] { return pthread_mutex_destroy(&m.mutex); }, 0, 0},
        {"init", [&] { return pthread_mutex_init(&m.mutex, nullptr); }, 0, 0},
        {"lock", [&] { return pthread_mutex_lock(&m.mutex); }, 0, 1},
        {"unlock", [&] { return pthread_mutex_unlock(&m.mutex); }, 0, -1},
    });
}

TEST_F(Accounting, NamesAThreadThatWasCancelledWithAMutexUntilThatIsReleased)
{
    Mutex m{PTHREAD_MUTEX_NORMAL};
    pthread_t thread{};
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void* argument) -> void* {
                      pthread_mutex_lock(static_cast<pthread_mutex_t*>(argument));
                      pthread_exit(nullptr);
                  },
                  &m.mutex),
              0);
    pthread_join(thread, nullptr);
    const auto report = stop_threads(1'000'000, [](void*) {}, nullptr);
    EXPECT_FALSE(report.reached);
    EXPECT_EQ(report.blocker_lock, &m.mutex);
    pthread_mutex_unlock(&m.mutex);  // By another thread: wrong by POSIX, and it happens.
    EXPECT_TRUE(stop_threads(1'000'000'000, [](void*) {}, nullptr).reached);
}

}  // namespace
}  // namespace stillpoint
