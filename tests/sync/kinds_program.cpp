// Synchronisation objects of every kind that libc has, in durable memory, contended while checkpoints come: those that the kernel reads
// and stores to itself (robust, of several processes, with priority inheritance) above all. What kinds_test.py runs:
//
//     sync_kinds POOL OPTIONS ROUNDS END
//
// Objects of a run before are taken as they are: each must be fit for use. END: exit, or kill (in the middle).
// Exit code 1: an update was lost, or a call failed.

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "marks_by_hand.h"
#include "stillpoint/stillpoint.h"

namespace {

struct MutexKind {
    const char* name;
    int type;
    bool is_robust;
    bool is_shared;
    int protocol;
};
constexpr MutexKind mutex_kinds[] = {
    {"normal", PTHREAD_MUTEX_NORMAL, false, false, PTHREAD_PRIO_NONE},
    {"errorcheck", PTHREAD_MUTEX_ERRORCHECK, false, false, PTHREAD_PRIO_NONE},
    {"recursive", PTHREAD_MUTEX_RECURSIVE, false, false, PTHREAD_PRIO_NONE},
    {"shared", PTHREAD_MUTEX_NORMAL, false, true, PTHREAD_PRIO_NONE},
    {"robust", PTHREAD_MUTEX_NORMAL, true, false, PTHREAD_PRIO_NONE},
    {"robust shared", PTHREAD_MUTEX_RECURSIVE, true, true, PTHREAD_PRIO_NONE},
    {"inheriting", PTHREAD_MUTEX_NORMAL, false, false, PTHREAD_PRIO_INHERIT},
    {"inheriting shared", PTHREAD_MUTEX_ERRORCHECK, false, true, PTHREAD_PRIO_INHERIT},
    {"inheriting robust", PTHREAD_MUTEX_NORMAL, true, false, PTHREAD_PRIO_INHERIT},
};
constexpr std::size_t kinds = std::size(mutex_kinds);

/// Each in a page of its own: what another object does must not open this one's.
struct alignas(4096) Guarded {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    std::uint64_t updates[2];  ///< equal outside the lock
};
struct alignas(4096) SharedObjects {
    pthread_rwlock_t rwlock;
    std::uint64_t updates[2];
    alignas(4096) sem_t semaphore;
    alignas(4096) pthread_barrier_t barrier;
};
struct State {
    Guarded guarded[kinds];
    SharedObjects shared;
};

std::atomic<int> failures{0};
constexpr int threads_of_each = 3;

void expect(const char* what, const char* kind, long result, long expected = 0)
{
    if (result != expected && failures++ < 10) {
        std::printf("%s (%s): %ld, not %ld\n", what, kind, result, expected);
    }
}

void initialise(State& state)
{
    for (std::size_t i = 0; i < kinds; ++i) {
        const MutexKind& kind = mutex_kinds[i];
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, kind.type);
        pthread_mutexattr_setrobust(&attributes, kind.is_robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
        pthread_mutexattr_setpshared(&attributes, kind.is_shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
        pthread_mutexattr_setprotocol(&attributes, kind.protocol);
        expect("pthread_mutex_init", kind.name, pthread_mutex_init(&state.guarded[i].mutex, &attributes));
        pthread_condattr_t condition_attributes;
        pthread_condattr_init(&condition_attributes);
        pthread_condattr_setpshared(&condition_attributes, kind.is_shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
        pthread_cond_init(&state.guarded[i].condition, &condition_attributes);
    }
    pthread_rwlockattr_t rwlock_attributes;
    pthread_rwlockattr_init(&rwlock_attributes);
    pthread_rwlockattr_setpshared(&rwlock_attributes, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_init(&state.shared.rwlock, &rwlock_attributes);
    sem_init(&state.shared.semaphore, 1, 1);
    pthread_barrierattr_t barrier_attributes;
    pthread_barrierattr_init(&barrier_attributes);
    pthread_barrierattr_setpshared(&barrier_attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&state.shared.barrier, &barrier_attributes, threads_of_each);
    sp_mark_written(&state, sizeof state);
}

/// Others come for the lock meanwhile, and checkpoints.
void update(std::uint64_t (&updates)[2])
{
    sp_fase_begin();  // With the engine pronto locks are none.
    ++updates[0];
    sp_mark_written(&updates[0], sizeof updates[0]);
    usleep(30);
    ++updates[1];
    sp_mark_written(&updates[1], sizeof updates[1]);
    sp_fase_end();
}

void lock(Guarded& guarded, const MutexKind& kind)
{
    int result = pthread_mutex_lock(&guarded.mutex);
    if (result == EOWNERDEAD && kind.is_robust) {
        result = pthread_mutex_consistent(&guarded.mutex);
    }
    expect("pthread_mutex_lock", kind.name, result);
    expect("updates under the lock", kind.name, static_cast<long>(guarded.updates[0] - guarded.updates[1]));
}

void use_mutex(Guarded& guarded, const MutexKind& kind, int rounds)
{
    for (int i = 0; i < rounds; ++i) {
        lock(guarded, kind);
        update(guarded.updates);
        if (i % 8 == 0) {
            pthread_cond_broadcast(&guarded.condition);
        }
        if (i % 4 == 0) {
            timespec when{};
            clock_gettime(CLOCK_REALTIME, &when);
            when.tv_nsec = when.tv_nsec + 300'000 < 1'000'000'000 ? when.tv_nsec + 300'000 : 999'999'999;
            const int result = pthread_cond_timedwait(&guarded.condition, &guarded.mutex, &when);
            if (result == EOWNERDEAD) {
                pthread_mutex_consistent(&guarded.mutex);
            } else {
                expect("pthread_cond_timedwait", kind.name, result == ETIMEDOUT ? 0 : result);
            }
        }
        expect("pthread_mutex_unlock", kind.name, pthread_mutex_unlock(&guarded.mutex));
    }
}

/// Threads that end with the lock.
void die_with(Guarded& guarded, const MutexKind& kind, int rounds)
{
    for (int i = 0; i < rounds; ++i) {
        std::thread([&] {
            lock(guarded, kind);
            update(guarded.updates);
        }).join();
        usleep(200);
    }
}

void use_shared(SharedObjects& shared, int thread, int rounds)
{
    for (int i = 0; i < rounds; ++i) {
        if (thread == 0 || i % 4 == 0) {
            expect("pthread_rwlock_wrlock", "shared", pthread_rwlock_wrlock(&shared.rwlock));
            update(shared.updates);
        } else {
            expect("pthread_rwlock_rdlock", "shared", pthread_rwlock_rdlock(&shared.rwlock));
            expect("updates under the lock", "rwlock", static_cast<long>(shared.updates[0] - shared.updates[1]));
        }
        expect("pthread_rwlock_unlock", "shared", pthread_rwlock_unlock(&shared.rwlock));
        while (sem_wait(&shared.semaphore) != 0) {
            expect("sem_wait", "shared", errno, EINTR);
        }
        usleep(20);
        expect("sem_post", "shared", sem_post(&shared.semaphore));
        const int result = pthread_barrier_wait(&shared.barrier);
        expect("pthread_barrier_wait", "shared", result == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : result);
    }
}

State* open_state()
{
    auto** const root = static_cast<State**>(sp_root("state", sizeof(State*)));
    if (*root == nullptr) {
        sp_fase_begin();
        *root = static_cast<State*>(sp_aligned_alloc(4096, sizeof(State)));
        std::memset(static_cast<void*>(*root), 0, sizeof(State));
        initialise(**root);
        sp_mark_written(root, sizeof *root);
        sp_fase_end();
        static_cast<void>(sp_checkpoint());
    }
    return *root;
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc != 5 || sp_open(argv[1], argv[2]) != SP_OK) {
        std::printf("%s\n", argc == 5 ? sp_last_error() : "sync_kinds POOL OPTIONS ROUNDS END");
        return 2;
    }
    alarm(60);  // A wake-up that is lost.
    State& state = *open_state();
    const int rounds = std::atoi(argv[3]);
    const bool is_killed = std::string(argv[4]) == "kill";
    int value = 0;
    sem_getvalue(&state.shared.semaphore, &value);
    if (value == 0) {
        sem_post(&state.shared.semaphore);  // The content of a run that was killed between wait and post.
    }
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kinds; ++i) {
        for (int thread = 0; thread < threads_of_each; ++thread) {
            threads.emplace_back([&state, i, rounds] { use_mutex(state.guarded[i], mutex_kinds[i], rounds); });
        }
        if (mutex_kinds[i].is_robust) {
            threads.emplace_back([&state, i, rounds] { die_with(state.guarded[i], mutex_kinds[i], rounds / 4); });
        }
    }
    for (int thread = 0; thread < threads_of_each; ++thread) {
        threads.emplace_back([&state, thread, rounds] { use_shared(state.shared, thread, rounds); });
    }
    if (is_killed) {
        threads[0].join();
        raise(SIGKILL);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (std::size_t i = 0; i < kinds; ++i) {
        lock(state.guarded[i], mutex_kinds[i]);
        pthread_mutex_unlock(&state.guarded[i].mutex);
    }
    std::fflush(stdout);
    return failures != 0 ? 1 : 0;
}
