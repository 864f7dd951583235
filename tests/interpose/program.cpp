// A program with locks, condition variables, barriers and semaphores in durable memory. It is killed while
// threads wait in all of them; after the restart all must be usable again. Run as: program start | again.

#include <cstdio>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <semaphore.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "stillpoint/stillpoint.h"

namespace {

struct Shared {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_mutex_t barrier_user;
    pthread_barrier_t barrier;
    sem_t semaphore;
    pthread_rwlock_t rwlock;
    pthread_mutex_t ignored;
    pthread_spinlock_t ignored_spinlock;
    bool initialised;
    int wanted;
};

void initialise(Shared& shared)
{
    sp_fase_begin();
    pthread_mutex_init(&shared.mutex, nullptr);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&shared.condition, &attributes);
    pthread_barrier_init(&shared.barrier, nullptr, 2);
    sem_init(&shared.semaphore, 0, 0);
    pthread_rwlock_init(&shared.rwlock, nullptr);
    pthread_mutex_init(&shared.ignored, nullptr);
    pthread_spin_init(&shared.ignored_spinlock, PTHREAD_PROCESS_PRIVATE);
    shared.initialised = true;
    sp_fase_end();
}

void contend(Shared& shared)
{
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&shared] {
            for (int turn = 0; turn < 2000; ++turn) {
                pthread_rwlock_rdlock(&shared.rwlock);
                pthread_rwlock_unlock(&shared.rwlock);
                pthread_rwlock_wrlock(&shared.rwlock);
                pthread_rwlock_unlock(&shared.rwlock);
            }
        });
    }
}

int start(Shared& shared)
{
    initialise(shared);
    contend(shared);
    sp_lock_ignore(&shared.ignored);
    sp_lock_ignore(const_cast<const int*>(&shared.ignored_spinlock));
    pthread_mutex_lock(&shared.ignored);
    pthread_spin_lock(&shared.ignored_spinlock);
    std::thread([&shared] {
        pthread_mutex_lock(&shared.mutex);
        while (shared.wanted == 0) {
            pthread_cond_wait(&shared.condition, &shared.mutex);
        }
    }).detach();
    std::thread([&shared] { pthread_barrier_wait(&shared.barrier); }).detach();
    std::thread([&shared] { sem_wait(&shared.semaphore); }).detach();
    usleep(20'000);
    const int durable = sp_checkpoint();
    std::printf("waiting %d\n", durable);
    std::fflush(stdout);
    pause();
    return 1;
}

int again(Shared& shared)
{
    // Each of these would wait forever on an object that still holds what the killed process left.
    int steps = 0;
    pthread_mutex_lock(&shared.mutex);
    timespec deadline{};
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_nsec = 0;  // In the past, on the clock that the condition was made with.
    const int timed = pthread_cond_timedwait(&shared.condition, &shared.mutex, &deadline);
    steps += timed == ETIMEDOUT ? 1 : 0;
    std::jthread waiter([&shared] {
        pthread_mutex_lock(&shared.mutex);
        while (shared.wanted == 0) {
            pthread_cond_wait(&shared.condition, &shared.mutex);
        }
        pthread_mutex_unlock(&shared.mutex);
    });
    shared.wanted = 1;
    pthread_cond_signal(&shared.condition);
    pthread_mutex_unlock(&shared.mutex);
    waiter.join();
    ++steps;
    std::jthread other([&shared] { pthread_barrier_wait(&shared.barrier); });
    pthread_barrier_wait(&shared.barrier);
    other.join();
    ++steps;
    std::jthread poster([&shared] { sem_post(&shared.semaphore); });
    sem_wait(&shared.semaphore);
    poster.join();
    ++steps;
    contend(shared);
    ++steps;
    steps += pthread_mutex_trylock(&shared.ignored) == 0 ? 1 : 0;
    steps += pthread_spin_trylock(&shared.ignored_spinlock) == 0 ? 1 : 0;
    pthread_spin_unlock(&shared.ignored_spinlock);
    pthread_mutex_unlock(&shared.ignored);
    const int destroyed = pthread_cond_destroy(&shared.condition) + pthread_mutex_destroy(&shared.mutex) +
                          pthread_barrier_destroy(&shared.barrier);
    steps += destroyed == 0 ? 1 : 0;
    std::printf("usable %d\n", steps);
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    auto* shared = static_cast<Shared*>(sp_root("shared", sizeof(Shared)));
    if (shared == nullptr || argc != 2) {
        std::printf("no root: %s\n", sp_last_error());
        return 2;
    }
    return std::strcmp(argv[1], "start") == 0 ? start(*shared) : again(*shared);
}
