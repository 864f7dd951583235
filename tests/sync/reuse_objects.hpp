#pragma once
// Pieces of durable memory that hold integers or synchronisation objects, and whether they came back so.

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <thread>
#include <vector>

#include "stillpoint/nvhooks.h"
#include "stillpoint/stillpoint.h"

namespace reuse {

/// One of each kind.
struct Objects {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    sem_t semaphore;
    pthread_barrier_t barrier;
    pthread_mutex_t ignored_mutex;
    pthread_rwlock_t ignored_rwlock;
    pthread_spinlock_t ignored_spinlock;
};

inline timespec in_a_moment()
{
    timespec when{};
    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_nsec += 1'000'000;
    when.tv_sec += when.tv_nsec / 1'000'000'000;
    when.tv_nsec %= 1'000'000'000;
    return when;
}

template <class T>
void stored(const T* object, std::size_t bytes = sizeof(T))
{
    sp_mark_written(object, bytes);
}

inline void initialise(Objects& objects)
{
    pthread_mutex_init(&objects.mutex, nullptr);
    pthread_cond_init(&objects.condition, nullptr);
    sem_init(&objects.semaphore, 0, 0);
    pthread_barrier_init(&objects.barrier, nullptr, 2);
    pthread_mutex_init(&objects.ignored_mutex, nullptr);
    pthread_rwlock_init(&objects.ignored_rwlock, nullptr);
    pthread_spin_init(&objects.ignored_spinlock, 0);
    stored(&objects);
}

/// Every way of use that recovery has to know of.
inline void use(Objects& objects)
{
    sp_lock_ignore(&objects.ignored_mutex);
    sp_lock_ignore(&objects.ignored_rwlock);
    sp_lock_ignore(const_cast<const int*>(&objects.ignored_spinlock));
    pthread_mutex_lock(&objects.mutex);
    timespec when = in_a_moment();
    pthread_cond_timedwait(&objects.condition, &objects.mutex, &when);
    pthread_mutex_unlock(&objects.mutex);
    when = in_a_moment();
    sem_timedwait(&objects.semaphore, &when);
    std::thread other([&] { pthread_barrier_wait(&objects.barrier); });
    pthread_barrier_wait(&objects.barrier);
    other.join();
    pthread_mutex_lock(&objects.ignored_mutex);
    pthread_mutex_unlock(&objects.ignored_mutex);
    pthread_rwlock_wrlock(&objects.ignored_rwlock);
    pthread_rwlock_unlock(&objects.ignored_rwlock);
    pthread_spin_lock(&objects.ignored_spinlock);
    pthread_spin_unlock(&objects.ignored_spinlock);
}

/// Small integers, as a program has them: any of them could be a state of a lock.
inline void fill(std::uint32_t* words, std::size_t count, std::uint64_t seed)
{
    std::minstd_rand random(static_cast<unsigned>(seed % 2'000'000'000) + 1);
    const unsigned greatest = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 3 : 200;
    for (std::size_t i = 0; i < count; ++i) {
        words[i] = static_cast<std::uint32_t>(random() % (greatest + 1));
    }
}

/// A piece of durable memory, and what lies there.
struct Piece {
    enum Kind : std::uint64_t { unused, integers, objects };
    std::uint64_t kind;
    std::uint64_t seed;
    std::byte* block;
    std::uint64_t block_bytes;
    std::uint64_t offset;  ///< of what lies there
    std::uint64_t bytes;

    [[nodiscard]] std::uint32_t* words() const { return reinterpret_cast<std::uint32_t*>(block + offset); }
    [[nodiscard]] Objects& object() const { return *reinterpret_cast<Objects*>(block + offset); }
};
inline constexpr std::size_t pieces_max = 24;
inline Piece* pieces() { return static_cast<Piece*>(sp_root("pieces", pieces_max * sizeof(Piece))); }

/// Inside a FASE.
inline void put_integers(Piece& piece, std::byte* block, std::size_t block_bytes, std::uint64_t seed)
{
    piece = {Piece::integers, seed, block, block_bytes, 0, block_bytes / 4 * 4};
    fill(piece.words(), piece.bytes / 4, seed);
    stored(piece.words(), piece.bytes);
    stored(&piece);
}

inline int verify_integers(const Piece& piece)
{
    std::vector<std::uint32_t> expected(piece.bytes / 4);
    fill(expected.data(), expected.size(), piece.seed);
    int wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (piece.words()[i] != expected[i]) {
            if (wrong++ < 3) {
                std::printf("word %zu of %zu is %u, not %u\n", i, expected.size(), piece.words()[i], expected[i]);
            }
        }
    }
    return wrong == 0 ? 0 : 1;
}

/// Objects that threads used when the process ended.
inline int verify_objects(Objects& objects)
{
    alarm(20);  // A waiter that recovery has missed waits forever.
    int wrong = 0;
    const auto expect = [&](const char* what, long result, long expected) {
        if (result != expected) {
            std::printf("%s: %ld, not %ld\n", what, result, expected);
            wrong = 1;
        }
    };
    expect("the mutex", pthread_mutex_trylock(&objects.mutex), 0);
    bool is_woken = false;
    std::thread waker([&] {
        pthread_mutex_lock(&objects.mutex);
        is_woken = true;
        pthread_cond_signal(&objects.condition);
        pthread_mutex_unlock(&objects.mutex);
    });
    while (!is_woken) {
        pthread_cond_wait(&objects.condition, &objects.mutex);
    }
    pthread_mutex_unlock(&objects.mutex);
    waker.join();
    expect("pthread_cond_destroy", pthread_cond_destroy(&objects.condition), 0);
    expect("pthread_mutex_destroy", pthread_mutex_destroy(&objects.mutex), 0);
    std::thread other([&] { pthread_barrier_wait(&objects.barrier); });
    pthread_barrier_wait(&objects.barrier);
    other.join();
    expect("pthread_barrier_destroy", pthread_barrier_destroy(&objects.barrier), 0);
    int value = -1;
    sem_getvalue(&objects.semaphore, &value);
    expect("sem_getvalue", value, 0);
    unsigned words[2];
    std::memcpy(words, &objects.semaphore, sizeof words);
    expect("waiters of the semaphore", words[1], 0);
    expect("the ignored mutex", pthread_mutex_trylock(&objects.ignored_mutex), 0);
    expect("the ignored read-write lock", pthread_rwlock_trywrlock(&objects.ignored_rwlock), 0);
    expect("the ignored spinlock", pthread_spin_trylock(&objects.ignored_spinlock), 0);
    pthread_mutex_unlock(&objects.ignored_mutex);
    pthread_rwlock_unlock(&objects.ignored_rwlock);
    pthread_spin_unlock(&objects.ignored_spinlock);
    alarm(0);
    return wrong;
}

inline int verify()
{
    int wrong = 0;
    for (std::size_t i = 0; i < pieces_max; ++i) {
        Piece& piece = pieces()[i];
        if (piece.kind == Piece::integers && verify_integers(piece) != 0) {
            std::printf("piece %zu, %zu bytes\n", i, static_cast<std::size_t>(piece.bytes));
            wrong = 1;
        } else if (piece.kind == Piece::objects) {
            std::uint32_t found[sizeof(Objects) / 4];
            std::memcpy(found, piece.words(), sizeof found);
            if (verify_objects(piece.object()) == 0) {
                continue;
            }
            std::printf("piece %zu, objects:", i);
            for (std::size_t word = 0; word < sizeof(Objects) / 4; ++word) {
                std::printf(" %x", found[word]);
            }
            std::printf("\n");
            wrong = 1;
        }
    }
    return wrong;
}

/// Threads that are in a wait, or hold an ignored lock, until the process ends.
inline void keep_in_use(Objects& objects)
{
    static std::atomic<int> ready{0};
    const int wanted = ready + 5;
    const auto start = [](auto&& body) { std::thread(body).detach(); };
    start([&] {
        pthread_mutex_lock(&objects.mutex);
        ++ready;
        while (true) {
            pthread_cond_wait(&objects.condition, &objects.mutex);
        }
    });
    start([&] {
        ++ready;
        while (sem_wait(&objects.semaphore) != 0) {
        }
    });
    start([&] {
        ++ready;
        pthread_barrier_wait(&objects.barrier);
    });
    start([&] {
        sp_lock_ignore(&objects.ignored_mutex);
        pthread_mutex_lock(&objects.ignored_mutex);
        ++ready;
        pause();
    });
    start([&] {
        sp_lock_ignore(&objects.ignored_rwlock);
        sp_lock_ignore(const_cast<const int*>(&objects.ignored_spinlock));
        pthread_rwlock_rdlock(&objects.ignored_rwlock);
        pthread_spin_lock(&objects.ignored_spinlock);
        ++ready;
        pause();
    });
    while (ready < wanted) {
        usleep(100);
    }
    usleep(2000);  // Most are in their calls by now; whether they are decides nothing.
}

}  // namespace reuse
