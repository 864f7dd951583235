/* For processes_test.py: what a program of threads does, on threads that are processes. Knows nothing of that: plain POSIX, plain
 * compiler. Prints "ok" or what is wrong. */

#define _GNU_SOURCE 1

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <stillpoint/nvthreads.h>
#include <stillpoint/stillpoint.h>

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno);       \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

enum { threads = 4, rounds = 2000 };

struct root {
    uint64_t value, other;
    uint64_t counters[threads];
    pthread_mutex_t lock; /* in durable memory */
    uint64_t total;
    unsigned char bytes[8192];
};

static struct root* root;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static int turn, shared_value;
static char* heap_block;

static void run(void* (*function)(void*))
{
    pthread_t made[threads];
    for (uintptr_t i = 0; i < threads; ++i) {
        CHECK(pthread_create(&made[i], NULL, function, (void*)i) == 0);
    }
    for (uintptr_t i = 0; i < threads; ++i) {
        void* value = NULL;
        CHECK(pthread_join(made[i], &value) == 0);
        CHECK(value == (void*)(i + 100));
    }
}

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

static void test_mutex(void)
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

static void test_durable_mutex(void)
{
    pthread_mutex_init(&root->lock, NULL);
    root->total = 0;
    run(count_in_durable);
    CHECK(root->total == threads * rounds);
}

/* Neighbouring bytes of a page under different locks. */
static pthread_mutex_t byte_locks[64] = {[0 ... 63] = PTHREAD_MUTEX_INITIALIZER};

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

static void test_bytes(void)
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

static void test_condition(void)
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

static void test_barrier(void)
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

static void test_semaphore(void)
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

static void test_rwlock(void)
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

static void test_kinds(void)
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

static _Thread_local int own = 5;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_calls, key_ends;

static void note_once(void) { once_calls++; }
static void note_key(void* value) { key_ends += (int)(intptr_t)value; }
static void note_cleanup(void* place) { *(int*)place += 1; }

static void* use_thread_state(void* place)
{
    CHECK(own == 5);
    own = 6;
    pthread_once(&once, note_once);
    pthread_setspecific(key, (void*)(intptr_t)3);
    CHECK(pthread_getspecific(key) == (void*)(intptr_t)3);
    pthread_cleanup_push(note_cleanup, place);
    pthread_exit((void*)(intptr_t)42);
    pthread_cleanup_pop(0);
    return NULL;
}

static void* wait_for_cancel(void* place)
{
    pthread_cleanup_push(note_cleanup, place);
    pthread_mutex_lock(&lock);
    pthread_cleanup_push((void (*)(void*))pthread_mutex_unlock, &lock);
    while (1) {
        pthread_cond_wait(&condition, &lock);
    }
    pthread_cleanup_pop(1);
    pthread_cleanup_pop(1);
    return NULL;
}

static int c11_thread(void* number) { return *(int*)number - 50; }

static void test_threads(void)
{
    pthread_t thread;
    thrd_t c11;
    void* value = NULL;
    int cleanups = 0, number = 43, result = 0; /* on this stack, changed by the others */
    pthread_key_create(&key, note_key);
    CHECK(pthread_create(&thread, NULL, use_thread_state, &cleanups) == 0);
    CHECK(pthread_tryjoin_np(thread, &value) == EBUSY || value == (void*)(intptr_t)42);
    if (value == NULL) {
        CHECK(pthread_join(thread, &value) == 0 && value == (void*)(intptr_t)42);
    }
    CHECK(own == 5 && cleanups == 1 && once_calls == 1 && key_ends == 3);
    pthread_once(&once, note_once);
    CHECK(once_calls == 1);
    CHECK(pthread_create(&thread, NULL, wait_for_cancel, &cleanups) == 0);
    usleep(20000);
    CHECK(pthread_kill(thread, 0) == 0);
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED && cleanups == 2);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    CHECK(thrd_create(&c11, c11_thread, &number) == thrd_success && thrd_join(c11, &result) == thrd_success && result == -7);
}

static void* allocate_and_fill(void* number)
{
    char* block = malloc(100000);
    memset(block, 'a' + (int)(uintptr_t)number, 100000);
    pthread_mutex_lock(&lock);
    free(heap_block);
    heap_block = block;
    pthread_mutex_unlock(&lock);
    for (int i = 1; i < 2000; ++i) {
        char* small = malloc((size_t)i);
        memset(small, i, (size_t)i);
        small = realloc(small, (size_t)i * 2);
        CHECK(small[i - 1] == (char)i);
        free(small);
    }
    return (void*)((uintptr_t)number + 100);
}

static void test_heap(void)
{
    run(allocate_and_fill);
    CHECK(heap_block[0] >= 'a' && heap_block[0] < 'a' + threads && heap_block[99999] == heap_block[0]);
    free(heap_block);
}

static void* replace_blocks(void* number)
{
    uint64_t** slot = sp_root("slots", threads * sizeof *slot);
    slot += (uintptr_t)number;
    for (uint64_t i = 0; i < 300; ++i) {
        pthread_mutex_lock(&byte_locks[(uintptr_t)number]);
        uint64_t* block = sp_malloc(2 * sizeof *block);
        CHECK(block != NULL);
        block[0] = i;
        block[1] = ~i;
        sp_free(*slot);
        *slot = block;
        pthread_mutex_unlock(&byte_locks[(uintptr_t)number]);
        CHECK((*slot)[0] == ~(*slot)[1]);
    }
    return (void*)((uintptr_t)number + 100);
}

static void test_durable_heap(void)
{
    sp_heap_statistics before, after;
    CHECK(sp_root("slots", threads * sizeof(uint64_t*)) != NULL);
    run(replace_blocks);
    CHECK(sp_heap_stats(&before) == SP_OK);
    run(replace_blocks);
    CHECK(sp_heap_stats(&after) == SP_OK && after.live_blocks == before.live_blocks);
    CHECK(sp_root_find("nothing", NULL) == NULL && errno == ENOENT && strstr(sp_last_error(), "nothing") != NULL);
    CHECK(sp_checkpoint() == SP_OK && sp_durable_epoch() > 0);
}

static void* print_lines(void* number)
{
    for (int i = 0; i < 50; ++i) {
        printf("thread %d line %d of fifty\n", (int)(uintptr_t)number, i);
    }
    return (void*)((uintptr_t)number + 100);
}

static void* race(void* number)
{
    for (int i = 0; i < 200; ++i) {
        pthread_mutex_lock(&byte_locks[(uintptr_t)number]); /* each its own: no lock at all */
        root->bytes[0] = (unsigned char)(i + (int)(uintptr_t)number * 50);
        usleep(100);
        pthread_mutex_unlock(&byte_locks[(uintptr_t)number]);
    }
    return (void*)((uintptr_t)number + 100);
}

static void test_race(void)
{
    uint64_t races = 0;
    run(race);
    usleep(20000);
    CHECK(sp_statistic("races", &races) == SP_OK && races > 0);
}

static void* die_alone(void* how)
{
    pthread_mutex_lock(&lock);
    root->value = 666;
    if (how != NULL) { /* another thread sees a part */
        pthread_mutex_lock(&inner);
        root->other = 666;
        pthread_mutex_unlock(&inner);
    }
    usleep(10000);
    syscall(62 /* kill */, getpid(), SIGKILL);
    return NULL;
}

static void test_death(void)
{
    pthread_t thread;
    void* value = NULL;
    pthread_mutex_lock(&lock);
    root->value = 1;
    pthread_mutex_unlock(&lock);
    CHECK(pthread_create(&thread, NULL, die_alone, NULL) == 0);
    CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED);
    pthread_mutex_lock(&lock);
    CHECK(root->value == 1);
    root->value = 2;
    pthread_mutex_unlock(&lock);
}

static void die_in_open_section(void)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    root->value = 1;
    root->other = 2;
    pthread_mutex_unlock(&lock);
    CHECK(pthread_create(&thread, NULL, die_alone, (void*)1) == 0);
    pthread_join(thread, NULL);
    printf("went on\n");
}

static void* exit_program(void* unused)
{
    pthread_mutex_lock(&lock);
    root->value = 77;
    pthread_mutex_unlock(&lock);
    printf("bye\n");
    exit(3);
    return unused;
}

static void test_programs(void)
{
    CHECK(system("exit 3") == 3 << 8);
    CHECK(fork() == -1 && errno == ENOSYS);
}

int main(int arguments, char** argument)
{
    static const struct {
        const char* name;
        void (*run)(void);
    } tests[] = {{"mutex", test_mutex}, {"durable-mutex", test_durable_mutex}, {"bytes", test_bytes}, {"condition", test_condition},
                 {"barrier", test_barrier}, {"semaphore", test_semaphore}, {"rwlock", test_rwlock}, {"kinds", test_kinds},
                 {"threads", test_threads}, {"heap", test_heap}, {"durable-heap", test_durable_heap}, {"race", test_race},
                 {"death", test_death}, {"programs", test_programs}};
    const char* how = arguments > 1 ? argument[1] : "look";
    root = sp_root("root", sizeof *root);
    if (root == NULL) {
        fprintf(stderr, "%s\n", sp_last_error());
        return 1;
    }
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
        if (strcmp(tests[i].name, how) == 0) {
            tests[i].run();
            printf("ok\n");
            return 0;
        }
    }
    if (strcmp(how, "look") == 0) {
        printf("%llu %llu\n", (unsigned long long)root->value, (unsigned long long)root->other);
    } else if (strcmp(how, "lines") == 0) {
        run(print_lines);
    } else if (strcmp(how, "open-death") == 0) {
        die_in_open_section();
    } else if (strcmp(how, "exit") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exit_program, NULL);
        while (1) {
            pause();
        }
    } else if (strcmp(how, "exit-main") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, count, (void*)0);
        pthread_detach(thread);
        pthread_exit(NULL);
    } else if (strcmp(how, "killed") == 0) {
        pthread_mutex_lock(&lock);
        root->value = 5;
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
        root->value = 6;
        kill(getpid(), SIGKILL);
    }
    return 0;
}
