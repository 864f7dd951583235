/* Threads that put numbered records into a durable tree of Tokyo Cabinet, one after the other, and say which have returned. At the start
 * every record of earlier runs is checked: each thread's numbers have no gap, keys come in their order, values are whole.
 *
 * Usage: ledger THREADS RECORDS     puts RECORDS more for each thread; 0: only looks
 *
 * Output: "has THREAD COUNT" for each thread of earlier runs, then "put THREAD NUMBER" for each record whose put has returned.
 * Exit code: 0, 1 where something is wrong, 2 without a pool. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stillpoint/stillpoint.h>

#include "tcdurable.h"

enum { threads_max = 16, value_bytes = 100 };

static TCNDB* tree;
static uint64_t had[threads_max];
static uint64_t wanted;

static void make_value(char* value, unsigned thread, uint64_t number) { memset(value, (int)('a' + (thread + number) % 26), value_bytes); }

static int look(void)
{
    int wrong = 0;
    char before[32] = "";
    uint64_t records = 0;
    tcndbiterinit(tree);
    for (char* key = tcndbiternext2(tree); key != NULL; key = tcndbiternext2(tree)) {
        unsigned thread = 0;
        uint64_t number = 0;
        char expected[value_bytes];
        int size = 0;
        char* const value = (char*)tcndbget(tree, key, (int)strlen(key), &size);
        const bool is_key = sscanf(key, "%u:%" SCNu64, &thread, &number) == 2 && thread < threads_max;
        if (is_key) {
            make_value(expected, thread, number);
        }
        if (!is_key || strcmp(before, key) >= 0 || number != had[thread]) {
            fprintf(stderr, "ledger: key %s is in a wrong place, after %s\n", key, before);
            wrong = 1;
        } else if (value == NULL || size != value_bytes || memcmp(value, expected, value_bytes) != 0) {
            fprintf(stderr, "ledger: the value of %s is not whole\n", key);
            wrong = 1;
        }
        had[is_key ? thread : 0] = number + 1;
        snprintf(before, sizeof before, "%s", key);
        free(value);
        free(key);
        ++records;
    }
    if (records != tcndbrnum(tree)) {
        fprintf(stderr, "ledger: %" PRIu64 " records, and the tree counts %" PRIu64 "\n", records, tcndbrnum(tree));
        wrong = 1;
    }
    return wrong;
}

static void* put_all(void* own)
{
    const unsigned thread = (unsigned)(uintptr_t)own;
    for (uint64_t number = had[thread]; number < had[thread] + wanted; ++number) {
        char key[32];
        char value[value_bytes];
        char line[48];
        snprintf(key, sizeof key, "%02u:%012" PRIu64, thread, number);
        make_value(value, thread, number);
        tcdurable_begin();
        tcndbput(tree, key, (int)strlen(key), value, value_bytes);
        tcdurable_end();
        const int length = snprintf(line, sizeof line, "put %u %" PRIu64 "\n", thread, number);
        if (write(STDOUT_FILENO, line, (size_t)length) != length) {
            break;
        }
    }
    return NULL;
}

int main(int count, char** words)
{
    const int threads = count == 3 ? atoi(words[1]) : 0;
    if (threads < 1 || threads > threads_max) {
        fprintf(stderr, "usage: ledger THREADS RECORDS (1 to %d threads)\n", threads_max);
        return 64;
    }
    wanted = strtoull(words[2], NULL, 10);
    tree = tcdurable_open("ledger");
    if (tree == NULL) {
        fprintf(stderr, "ledger: no tree: %s\n", sp_last_error());
        return 2;
    }
    if (look() != 0) {
        return 1;
    }
    for (unsigned thread = 0; thread < threads_max; ++thread) {
        if (had[thread] != 0) {
            printf("has %u %" PRIu64 "\n", thread, had[thread]);
        }
    }
    fflush(stdout);
    pthread_t made[threads_max];
    for (int i = 0; wanted != 0 && i < threads; ++i) {
        if (pthread_create(&made[i], NULL, put_all, (void*)(uintptr_t)i) != 0) {
            return 1;
        }
    }
    for (int i = 0; wanted != 0 && i < threads; ++i) {
        pthread_join(made[i], NULL);
    }
    return 0;
}
