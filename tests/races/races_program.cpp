// A program of many threads on a pool, for ThreadSanitizer: the runtime, the engine and the shims are instrumented and so
// is this. Its own checks are few: the sanitizer judges. Usage: races_program MODE POOL OPTIONS SECONDS
//
// The shims are called by address: through the sanitizer's own interceptors they would run with its tracking of atomics
// switched off. What libc does inside them it does not see, so the wrappers below say what a lock orders.
//
// Each mode runs until its rounds are done or its seconds are over, whichever is first.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <sanitizer/tsan_interface.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "marks_by_hand.h"
#include "stillpoint/stillpoint.h"

namespace {

constexpr int threads = 4;
constexpr int rounds_max = 20'000;
using Clock = std::chrono::steady_clock;

Clock::time_point deadline;

[[noreturn]] void fail(const char* what)
{
    std::fprintf(stderr, "races_program: %s: %s\n", what, sp_last_error());
    std::_Exit(3);
}

bool goes_on(int round) { return round < rounds_max && (round % 16 != 0 || Clock::now() < deadline); }

template <class Function>
Function* shim(const char* name, Function*)
{
    void* const library = dlopen("libstillpoint.so.1", RTLD_NOW | RTLD_NOLOAD);
    void* const found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) {
        std::fprintf(stderr, "races_program: libstillpoint.so has no %s\n", name);
        std::_Exit(3);
    }
    return reinterpret_cast<Function*>(found);
}

#define SHIM_OF(name) static const auto call = shim(#name, &name)

void lock(pthread_mutex_t& mutex)
{
    SHIM_OF(pthread_mutex_lock);
    call(&mutex);
    __tsan_acquire(&mutex);
}

bool try_lock(pthread_mutex_t& mutex)
{
    SHIM_OF(pthread_mutex_trylock);
    const bool held = call(&mutex) == 0;
    if (held) {
        __tsan_acquire(&mutex);
    }
    return held;
}

void mark_state();

void unlock(pthread_mutex_t& mutex)
{
    SHIM_OF(pthread_mutex_unlock);
    mark_state();
    __tsan_release(&mutex);
    call(&mutex);
}

void wait(pthread_cond_t& condition, pthread_mutex_t& mutex)
{
    SHIM_OF(pthread_cond_wait);
    __tsan_release(&mutex);
    call(&condition, &mutex);
    __tsan_acquire(&mutex);
}

void lock_spinning(pthread_spinlock_t& spinlock)
{
    SHIM_OF(pthread_spin_lock);
    call(&spinlock);
    __tsan_acquire(const_cast<int*>(&spinlock));
}

void unlock_spinning(pthread_spinlock_t& spinlock)
{
    SHIM_OF(pthread_spin_unlock);
    __tsan_release(const_cast<int*>(&spinlock));
    call(&spinlock);
}

void lock_to_read(pthread_rwlock_t& rwlock)
{
    SHIM_OF(pthread_rwlock_rdlock);
    call(&rwlock);
    __tsan_acquire(&rwlock);
}

void lock_to_write(pthread_rwlock_t& rwlock)
{
    SHIM_OF(pthread_rwlock_wrlock);
    call(&rwlock);
    __tsan_acquire(&rwlock);
}

void unlock(pthread_rwlock_t& rwlock)
{
    SHIM_OF(pthread_rwlock_unlock);
    __tsan_release(&rwlock);
    call(&rwlock);
}

/// In durable memory.
struct State {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    pthread_spinlock_t spinlock;
    pthread_cond_t condition;
    std::uint64_t balance[2];  ///< under the mutex: their sum is 0
    std::uint64_t read_mostly; ///< under the read-write lock
    std::uint64_t spun;
    std::uint64_t queued;      ///< under the mutex, with the condition
    std::uint64_t taken;
    void* blocks[64];          ///< under the mutex
};

State* state = nullptr;

/// Late, and more than was written, as a coalesced mark may be. Of effect with the tracker hooks only.
void mark_state() { sp_mark_written(state, sizeof *state); }

template <class Body>
void on_threads(Body body)
{
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back(body, i);
    }
    for (auto& thread : all) {
        thread.join();
    }
}

void lock_round(int round)
{
    lock(state->mutex);
    ++state->balance[0];
    lock_spinning(state->spinlock);
    ++state->spun;
    unlock_spinning(state->spinlock);
    --state->balance[1];
    unlock(state->mutex);
    if (round % 8 == 0) {
        lock_to_write(state->rwlock);
        ++state->read_mostly;
    } else {
        lock_to_read(state->rwlock);
    }
    unlock(state->rwlock);
    if (try_lock(state->mutex)) {
        if (state->balance[0] + state->balance[1] != 0) {
            fail("a FASE was seen half done");
        }
        unlock(state->mutex);
    }
}

void run_locks()
{
    on_threads([](int) {
        for (int round = 0; goes_on(round); ++round) {
            lock_round(round);
        }
    });
}

void run_conditions()
{
    std::atomic<int> producers{threads / 2};
    on_threads([&](int thread) {
        if (thread % 2 == 0) {
            for (int round = 0; goes_on(round); ++round) {
                lock(state->mutex);
                ++state->queued;
                pthread_cond_signal(&state->condition);
                unlock(state->mutex);
            }
            lock(state->mutex);
            --producers;
            pthread_cond_broadcast(&state->condition);
            unlock(state->mutex);
            return;
        }
        lock(state->mutex);
        while (producers.load() != 0 || state->queued != state->taken) {
            if (state->queued == state->taken) {
                wait(state->condition, state->mutex);
            } else {
                ++state->taken;
            }
        }
        unlock(state->mutex);
    });
}

void run_births()
{
    for (int round = 0; round < 2000 && Clock::now() < deadline; ++round) {
        on_threads([](int) { lock_round(1); });
    }
}

void run_heap()
{
    on_threads([](int thread) {
        for (int round = 0; goes_on(round); ++round) {
            const std::size_t bytes = 16u << (round % 12);
            void* const block = sp_malloc(bytes);
            if (block == nullptr) {
                fail("sp_malloc");
            }
            const auto slot = static_cast<std::size_t>((round * 7 + thread) % 64);
            lock(state->mutex);
            std::memset(block, round, bytes < 64 ? bytes : 64);
            void* const old = state->blocks[slot];
            state->blocks[slot] = block;
            unlock(state->mutex);
            sp_free(old);  // Another thread's, often.
        }
    });
}

void run_durable()
{
    on_threads([](int thread) {
        for (int round = 0; round < 200 && Clock::now() < deadline; ++round) {
            lock_round(round);
            if (thread == 0 ? sp_checkpoint() != SP_OK : sp_wait_durable(sp_epoch(), 30'000) != SP_OK) {
                fail("an epoch did not become durable");
            }
        }
    });
}

void run_roots()
{
    on_threads([](int thread) {
        char name[32];
        for (int round = 0; round < 500 && Clock::now() < deadline; ++round) {
            std::snprintf(name, sizeof name, "root-%d", (thread + round) % 6);
            if (sp_root(name, 64) == nullptr) {
                fail("sp_root");
            }
            std::size_t bytes = 0;
            static_cast<void>(sp_root_find(name, &bytes));
            if (round % 3 == 0) {
                static_cast<void>(sp_root_delete(name));
            }
        }
    });
}

/// A child does what a child of a threaded program may: little, and _exit.
void run_forks()
{
    std::atomic<bool> stop{false};
    std::vector<std::thread> lockers;
    for (int i = 0; i < 2; ++i) {
        lockers.emplace_back([&stop] {
            for (int round = 0; !stop.load(); ++round) {
                lock_round(round);
            }
        });
    }
    for (int round = 0; round < 30 && Clock::now() < deadline; ++round) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(7);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
            fail("a forked child did not end as it should");
        }
    }
    stop = true;
    for (auto& locker : lockers) {
        locker.join();
    }
}

/// The defect that the sanitizer must see.
void run_unlocked()
{
    on_threads([](int) { ++state->spun; });
}

void make_state()
{
    state = static_cast<State*>(sp_root("state", sizeof(State)));
    if (state == nullptr) {
        fail("sp_root");
    }
    sp_fase_begin();
    pthread_mutex_init(&state->mutex, nullptr);
    pthread_rwlock_init(&state->rwlock, nullptr);
    pthread_spin_init(&state->spinlock, PTHREAD_PROCESS_PRIVATE);
    pthread_cond_init(&state->condition, nullptr);
    sp_fase_end();
}

constexpr struct {
    const char* name;
    void (*run)();
} modes[] = {{"locks", run_locks},     {"conditions", run_conditions}, {"births", run_births}, {"heap", run_heap},
             {"durable", run_durable}, {"roots", run_roots},           {"forks", run_forks},   {"unlocked", run_unlocked}};

}  // namespace

int main(int count, char** arguments)
{
    if (count != 5) {
        std::fprintf(stderr, "usage: races_program MODE POOL OPTIONS SECONDS\n");
        return 2;
    }
    const int opened = sp_open(arguments[2], arguments[3]);
    if (opened == SP_E_UNSUPPORTED) {
        std::fprintf(stderr, "races_program: %s\n", sp_last_error());
        return 4;
    }
    if (opened != SP_OK) {
        fail("sp_open");
    }
    deadline = Clock::now() + std::chrono::milliseconds(static_cast<long>(1000 * std::atof(arguments[4])));
    make_state();
    for (const auto& mode : modes) {
        if (std::strcmp(mode.name, arguments[1]) == 0) {
            mode.run();
            if (sp_close() != SP_OK) {
                fail("sp_close");
            }
            std::printf("races_program: %s done\n", mode.name);
            return 0;
        }
    }
    std::fprintf(stderr, "races_program: no mode %s\n", arguments[1]);
    return 2;
}
