/* A program as there are many for transactional memory. Of Stillpoint it knows where its data lies: sp_open and sp_root.
 *
 * Usage: program POOL THREADS OPERATIONS [relaxed]
 * Threads insert and remove numbers of a sorted list, and count what they have done. The number of operations that a thread has done is
 * printed after each ten. At the start and at the end the list is sorted and as long as it is said to be; else BROKEN is printed. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "stillpoint/stillpoint.h"

#define SAFE __attribute__((transaction_safe))

enum { nodes_max = 512, threads_max = 8 };

typedef struct node {
    long value;
    struct node* next;
} node;

static struct set {
    node nodes[nodes_max];
    node *first, *free;
    long used, length;
    long done[threads_max];
}* set;

static SAFE node* take_node(void)
{
    node* taken = set->free;
    if (taken != NULL) {
        set->free = taken->next;
    } else if (set->used < nodes_max) {
        taken = &set->nodes[set->used++];
    }
    return taken;
}

static SAFE node** find(long value)
{
    node** place = &set->first;
    while (*place != NULL && (*place)->value < value) {
        place = &(*place)->next;
    }
    return place;
}

static SAFE int insert(long value)
{
    node** place = find(value);
    if (*place != NULL && (*place)->value == value) {
        return 0;
    }
    node* made = take_node();
    if (made == NULL) {
        return 0;
    }
    made->value = value;
    made->next = *place;
    *place = made;
    set->length++;
    return 1;
}

static SAFE int erase(long value)
{
    node** place = find(value);
    node* found = *place;
    if (found == NULL || found->value != value) {
        return 0;
    }
    *place = found->next;
    found->next = set->free;
    set->free = found;
    set->length--;
    return 1;
}

static long operations;
static time_t last_time;
static int has_relaxed;

static void operate(long thread, long value)
{
    __transaction_atomic
    {
        if (!insert(value)) {
            erase(value);
        }
        set->done[thread]++;
    }
}

/* With a call of a library that knows nothing of transactions: the compiler instruments none of it. */
static void operate_alone(long thread, long value)
{
    __transaction_relaxed
    {
        last_time = time(NULL);
        if (!insert(value)) {
            erase(value);
        }
        set->done[thread]++;
    }
}

static void* work(void* argument)
{
    const long thread = (long)argument;
    unsigned random = (unsigned)(thread + set->done[thread]);
    while (set->done[thread] < operations) {
        const long value = rand_r(&random) % (2 * nodes_max);
        if (has_relaxed && value % 16 == 0) {
            operate_alone(thread, value);
        } else {
            operate(thread, value);
        }
        if (set->done[thread] % 10 == 0) {
            printf("%ld %ld\n", thread, set->done[thread]);
            fflush(stdout);
        }
    }
    return NULL;
}

static void check(const char* when)
{
    long length = 0;
    for (const node* one = set->first; one != NULL; one = one->next, ++length) {
        if (one->next != NULL && one->next->value <= one->value) {
            printf("BROKEN %s: not sorted\n", when);
        }
    }
    if (length != set->length) {
        printf("BROKEN %s: %ld, not %ld\n", when, length, set->length);
    }
}

int main(int count, char** words)
{
    if (count < 4 || sp_open(words[1], "engine=spht quiet durability=process pool_size_mb=8") != SP_OK) {
        fprintf(stderr, "%s\n", sp_last_error());
        return 1;
    }
    set = sp_root("set", sizeof *set);
    const long threads = atol(words[2]);
    operations = atol(words[3]);
    has_relaxed = count > 4;
    check("at the start");
    for (long i = 0; i < threads; ++i) {
        printf("start %ld %ld\n", i, set->done[i]);
    }
    fflush(stdout);
    pthread_t running[threads_max];
    for (long i = 0; i < threads; ++i) {
        pthread_create(&running[i], NULL, work, (void*)i);
    }
    for (long i = 0; i < threads; ++i) {
        pthread_join(running[i], NULL);
    }
    check("at the end");
    printf("done\n");
    return 0;
}
