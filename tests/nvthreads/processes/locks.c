/* Locks, condition variables, barriers and semaphores. */

#include "program.h"

#include <semaphore.h>
#include <time.h>

static pthread_barrier_t barrier;
static sem_t semaphore;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static int turn, shared_value;

static void* count(void* number)
{
    for (int i = 0; i < rounds; ++i) {
        pthread_mutex_lock(&lock);
        root->total++;
        root->counters[(uintptr_t)number]++;
        shared_value++;
        pthread_mutex_unlock(&lock);
    }
    return (void*)((uintptr_t)number + 100);
}

void test_mutex(void)
{
    root->total = 0;
    run(count);
    CHECK(root->total == threads * rounds && shared_value == threads * rounds);
}

static void* count_in_durable(void* number)
{
    for (int i = 0; i < rounds; ++i) {
        pthread_mutex_lock(&root->lock);
        root->total++;
        pthread_mutex_unlock(&root->lock);
    }
    return (void*)((uintptr_t)number + 100);
}

void test_durable_mutex(void)
{
    pthread_mutex_init(&root->lock, NULL);
    root->total = 0;
    run(count_in_durable);
    CHECK(root->total == threads * rounds);
}

/* Neighbouring bytes of a page under different locks. */
static void* count_bytes(void* number)
{
    for (int i = 0; i < rounds; ++i) {
        const int which = (i * 7 + (int)(uintptr_t)number * 13) % 64;
        pthread_mutex_lock(&byte_locks[which]);
        root->bytes[which]++;
        pthread_mutex_unlock(&byte_locks[which]);
    }
    return (void*)((uintptr_t)number + 100);
}

void test_bytes(void)
{
    unsigned sum = 0;
    memset(root->bytes, 0, sizeof root->bytes);
    run(count_bytes);
    for (int i = 0; i < 64; ++i) {
        sum += root->bytes[i];
    }
    CHECK(sum % 256 == threads * rounds % 256 && sum > 0);
}

static void* take_turns(void* number)
{
    for (int i = 0; i < 200; ++i) {
        pthread_mutex_lock(&lock);
        while (turn != (int)(uintptr_t)number) {
            pthread_cond_wait(&condition, &lock);
        }
        CHECK(root->value == (uint64_t)(i * threads) + (uintptr_t)number);
        root->value++;
        turn = (turn + 1) % threads;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&lock);
    }
    return (void*)((uintptr_t)number + 100);
}

void test_condition(void)
{
    struct timespec soon;
    root->value = 0;
    run(take_turns);
    CHECK(root->value == threads * 200);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 20000000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    CHECK(pthread_cond_timedwait(&condition, &lock, &soon) == ETIMEDOUT);
    pthread_mutex_unlock(&lock);
}

static void* meet(void* number)
{
    for (int i = 0; i < 200; ++i) {
        root->counters[(uintptr_t)number] = (uint64_t)i;
        pthread_barrier_wait(&barrier);
        for (int other = 0; other < threads; ++other) {
            CHECK(root->counters[other] == (uint64_t)i);
        }
        pthread_barrier_wait(&barrier);
    }
    return (void*)((uintptr_t)number + 100);
}

void test_barrier(void)
{
    CHECK(pthread_barrier_init(&barrier, NULL, threads) == 0);
    run(meet);
    CHECK(pthread_barrier_destroy(&barrier) == 0);
}

static void* pass_semaphore(void* number)
{
    for (int i = 0; i < 200; ++i) {
        CHECK(sem_wait(&semaphore) == 0);
        root->total++;
        CHECK(sem_post(&semaphore) == 0);
    }
    return (void*)((uintptr_t)number + 100);
}

void test_semaphore(void)
{
    int value = 0;
    struct timespec past = {1, 0};
    CHECK(sem_init(&semaphore, 0, 1) == 0);
    root->total = 0;
    run(pass_semaphore);
    CHECK(root->total == threads * 200);
    CHECK(sem_getvalue(&semaphore, &value) == 0 && value == 1);
    CHECK(sem_trywait(&semaphore) == 0 && sem_trywait(&semaphore) == -1 && errno == EAGAIN);
    CHECK(sem_timedwait(&semaphore, &past) == -1 && errno == ETIMEDOUT);
}

static void* read_and_write(void* number)
{
    for (int i = 0; i < 500; ++i) {
        if (i % 4 == 0) {
            pthread_rwlock_wrlock(&rwlock);
            root->value++;
            root->other = ~root->value;
            pthread_rwlock_unlock(&rwlock);
        } else {
            pthread_rwlock_rdlock(&rwlock);
            CHECK(root->other == ~root->value);
            pthread_rwlock_unlock(&rwlock);
        }
        pthread_spin_lock(&spinlock);
        root->total++;
        pthread_spin_unlock(&spinlock);
    }
    return (void*)((uintptr_t)number + 100);
}

void test_rwlock(void)
{
    root->value = 0;
    root->other = ~UINT64_C(0);
    root->total = 0;
    pthread_spin_init(&spinlock, 0);
    run(read_and_write);
    CHECK(root->value == threads * 125 && root->total == threads * 500);
}

static void* hold_kinds(void* argument)
{
    pthread_mutex_t* mutexes = argument;
    CHECK(pthread_mutex_trylock(&mutexes[0]) == EBUSY);
    CHECK(pthread_mutex_unlock(&mutexes[1]) == EPERM);
    CHECK(pthread_mutex_lock(&mutexes[2]) == 0); /* robust, and its owner ends */
    return NULL;
}

void test_kinds(void)
{
    pthread_mutex_t mutexes[3]; /* on the stack, and another thread's to use */
    pthread_mutexattr_t attributes;
    pthread_t thread;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutexes[0], &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutexes[1], &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutexes[2], &attributes);
    CHECK(pthread_mutex_lock(&mutexes[0]) == 0 && pthread_mutex_lock(&mutexes[0]) == 0);
    CHECK(pthread_mutex_lock(&mutexes[1]) == 0 && pthread_mutex_lock(&mutexes[1]) == EDEADLK);
    CHECK(pthread_create(&thread, NULL, hold_kinds, mutexes) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_mutex_unlock(&mutexes[0]) == 0 && pthread_mutex_unlock(&mutexes[0]) == 0 && pthread_mutex_unlock(&mutexes[0]) == EPERM);
    CHECK(pthread_mutex_unlock(&mutexes[1]) == 0);
    CHECK(pthread_mutex_lock(&mutexes[2]) == EOWNERDEAD);
    CHECK(pthread_mutex_consistent(&mutexes[2]) == 0);
    CHECK(pthread_mutex_unlock(&mutexes[2]) == 0);
    CHECK(pthread_mutex_lock(&mutexes[2]) == 0 && pthread_mutex_unlock(&mutexes[2]) == 0);
}
