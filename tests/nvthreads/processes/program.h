/* Shared by the files of this program: for processes_test.py, what a program of threads does, on threads that are processes. It knows
 * nothing of that: plain POSIX, any compiler. Prints "ok" or what is wrong. */

#ifndef PROCESSES_PROGRAM_H
#define PROCESSES_PROGRAM_H

#define _GNU_SOURCE 1

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stillpoint/nvthreads.h>
#include <stillpoint/stillpoint.h>

#define CHECK(condition)                                                                                                                   \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno);                                                               \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

enum { threads = 4, rounds = 2000 };

struct root {
    uint64_t value, other;
    uint64_t counters[threads];
    pthread_mutex_t lock; /* in durable memory */
    uint64_t total;
    unsigned char bytes[8192];
};

extern struct root* root;
extern pthread_mutex_t lock, inner, byte_locks[64];
extern pthread_cond_t condition;

/* Runs it in `threads` threads, whose values must be their numbers plus 100. */
void run(void* (*function)(void*));

void test_mutex(void);
void test_durable_mutex(void);
void test_bytes(void);
void test_condition(void);
void test_barrier(void);
void test_semaphore(void);
void test_rwlock(void);
void test_kinds(void);
void test_threads(void);
void test_heap(void);
void test_durable_heap(void);

#endif
