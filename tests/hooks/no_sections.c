/* Two threads that write durable memory until some epochs have gone by, delimited as the first word says: by locks that
 * Stillpoint does not see, by none, or by what the engine knows (no_sections_test.py). */
#define _GNU_SOURCE
#include "marks_by_hand.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <stillpoint/respct.h>
#include <stillpoint/stillpoint.h>

struct pair {
    uint64_t one;
    uint64_t other;
};

static const char* kind;
static uint64_t last_epoch;
static struct pair* pairs;
static atomic_int spinning;
static _Atomic uint32_t futex_word;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool written_alone;

static bool is(const char* name) { return strcmp(kind, name) == 0; }

/* As language runtimes make locks: libc is not asked. */
static void futex_lock(void)
{
    uint32_t expected = 0;
    while (!atomic_compare_exchange_strong(&futex_word, &expected, 1)) {
        syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
        expected = 0;
    }
}

static void futex_unlock(void)
{
    atomic_store(&futex_word, 0);
    syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void begin(void)
{
    if (is("spin")) {
        while (atomic_exchange(&spinning, 1) != 0) {
            sched_yield();
        }
    } else if (is("futex") || is("heap")) {
        futex_lock();
    } else if (is("mutex") || (is("late") && atomic_load(&written_alone))) {
        pthread_mutex_lock(&mutex);
    } else if (is("section")) {
        sp_fase_begin();
    }
}

static void end(void)
{
    if (is("spin")) {
        atomic_store(&spinning, 0);
    } else if (is("futex") || is("heap")) {
        futex_unlock();
    } else if (is("mutex") || (is("late") && atomic_load(&written_alone))) {
        pthread_mutex_unlock(&mutex);
    } else if (is("section")) {
        sp_fase_end();
    }
}

static void update(struct pair* pair)
{
    if (is("heap")) {
        sp_free(sp_malloc(100));
    }
    if (is("restart")) {
        SP_RESPCT_RP(1);
    }
    ++pair->one;
    ++pair->other;
    sp_mark_written(pair, sizeof *pair);
    if (is("restart")) {
        sp_respct_add_modified(pair, sizeof *pair);
    }
}

static void write_until(uint64_t epoch)
{
    const time_t deadline = time(NULL) + 60;
    while (sp_epoch() < epoch && time(NULL) < deadline) {
        for (int i = 0; i < 100; ++i) {
            begin();
            update(pairs);
            end();
        }
        usleep(200);
    }
}

static void* writer(void* unused)
{
    (void)unused;
    write_until(last_epoch);
    return NULL;
}

int main(int count, char** words)
{
    kind = words[1];
    const uint64_t epochs = count > 2 ? strtoull(words[2], NULL, 10) : 30;
    pairs = sp_root("pairs", sizeof *pairs);
    if (is("late")) {  /* makes its structures alone, before any lock is needed */
        write_until(sp_epoch() + 8);
        atomic_store(&written_alone, true);
    }
    last_epoch = sp_epoch() + epochs;
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) {
        pthread_create(&threads[i], NULL, writer, NULL);
    }
    for (int i = 0; i < 2; ++i) {
        pthread_join(threads[i], NULL);
    }
    uint64_t counted = 0;
    sp_statistic("epochs_without_section", &counted);
    printf("%s %lu\n", kind, (unsigned long)counted);
    return 0;
}
