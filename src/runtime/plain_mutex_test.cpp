// Invariant: libc and the in-line code can be mixed on one mutex in any order, by any threads.

#include "runtime/plain_mutex.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "core/sanitizers.hpp"

namespace stillpoint {
namespace {

TEST(PlainMutex, IsWhatThisGlibcMakesOfOne)
{
    EXPECT_TRUE(plain_mutex_is_as_expected({&pthread_mutex_lock, &pthread_mutex_trylock, &pthread_mutex_unlock}));
}

TEST(PlainMutex, ExcludesThreadsThatLockItInLineAndThroughLibc)
{
    if (thread_sanitizer) {
        GTEST_SKIP() << "the thread sanitizer does not see what libc's own instructions order";
    }
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    constexpr int turns = 30'000;
    std::uint64_t guarded = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            const int self = gettid();
            for (int turn = 0; turn < turns; ++turn) {
                if (i % 2 == 0 || !try_lock_plain(mutex, self)) {
                    pthread_mutex_lock(&mutex);
                }
                ++guarded;
                if (turn % 3 == 0 || !try_unlock_plain(mutex)) {
                    pthread_mutex_unlock(&mutex);
                }
            }
        });
    }
    threads.clear();
    EXPECT_EQ(guarded, std::uint64_t{4} * turns);
    EXPECT_EQ(mutex.__data.__nusers, 0u);
    EXPECT_EQ(pthread_mutex_destroy(&mutex), 0);
}

TEST(PlainMutex, OfAnotherKindIsNotTakenForOne)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_t mutex;
    pthread_mutex_init(&mutex, &attributes);
    EXPECT_FALSE(is_plain_mutex(mutex));
    pthread_mutex_destroy(&mutex);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    EXPECT_FALSE(is_plain_mutex(mutex));
    pthread_mutex_destroy(&mutex);
    pthread_mutexattr_destroy(&attributes);
}

}  // namespace
}  // namespace stillpoint
