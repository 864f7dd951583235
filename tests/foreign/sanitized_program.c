/* sanitized_program [--bug KIND] [POOL [OPTIONS]]: two threads count in durable memory; built with each sanitizer by
 * sanitizers_test.py. With POOL it opens the pool itself. Prints "count N"; exit code 3 and the reason where the pool is refused.
 * KIND: heap (reads freed memory), overflow (adds to INT_MAX). */
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stillpoint/stillpoint.h"

enum { rounds = 1000, threads = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t* count;

static void* work(void* unused)
{
    for (int i = 0; i < rounds; ++i) {
        pthread_mutex_lock(&lock);
        ++*count;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static int make_bug(const char* kind)
{
    if (strcmp(kind, "heap") == 0) {
        volatile char* block = malloc(8);
        free((void*)block);
        return block[0];
    }
    volatile int largest = INT_MAX;
    return largest + 1;
}

int main(int argc, char** argv)
{
    int first = 1;
    const char* bug = NULL;
    if (argc > 2 && strcmp(argv[1], "--bug") == 0) {
        bug = argv[2];
        first = 3;
    }
    if (argc > first && sp_open(argv[first], argc > first + 1 ? argv[first + 1] : NULL) != SP_OK) {
        fprintf(stderr, "refused: %s\n", sp_last_error());
        return 3;
    }
    pthread_mutex_lock(&lock);
    count = sp_root("count", sizeof *count);
    pthread_mutex_unlock(&lock);
    pthread_t workers[threads];
    for (int i = 0; i < threads; ++i) {
        pthread_create(&workers[i], NULL, work, NULL);
    }
    for (int i = 0; i < threads; ++i) {
        pthread_join(workers[i], NULL);
    }
    if (bug != NULL) {
        printf("%d\n", make_bug(bug));
    }
    printf("count %lu\n", (unsigned long)*count);
    return 0;
}
