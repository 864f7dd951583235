/* Preloaded into a foreign program that runs with a pool: one thread that changes durable memory all the time, so that checkpoints have
 * work while the program runs. Each section adds one to a number in each of 16 pages; a start that finds them different, or no lock
 * that works, ends the program with code 99. Does nothing where no pool is open: in the tool, and in what the program starts. */

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

enum { pages = 16, page_bytes = 4096, wrong = 99 };

typedef struct companion {
    pthread_mutex_t lock; /* in durable memory: recovery makes it free */
    uint64_t made;
    struct {
        uint64_t sections;
        char rest[page_bytes - sizeof(uint64_t)];
    } page[pages];
} companion;

static void add_one(companion* of)
{
    pthread_mutex_lock(&of->lock);
    for (int i = 0; i < pages; ++i) {
        ++of->page[i].sections;
    }
    pthread_mutex_unlock(&of->lock);
}

static void* work(void* argument)
{
    const struct timespec pause = {0, 500000};
    while (nanosleep(&pause, NULL) == 0) {
        add_one(argument);
    }
    return NULL;
}

static void check(const companion* found)
{
    for (int i = 1; i < pages; ++i) {
        if (found->page[i].sections != found->page[0].sections) {
            fprintf(stderr, "companion: page %d has %lu sections, page 0 has %lu\n", i, (unsigned long)found->page[i].sections,
                    (unsigned long)found->page[0].sections);
            _exit(wrong);
        }
    }
}

__attribute__((constructor)) static void start(void)
{
    if (sp_start_kind() == SP_START_VOLATILE) {
        return;
    }
    sp_fase_begin();
    companion* const found = sp_root("companion", sizeof *found);
    if (found != NULL && !found->made) {
        found->made = pthread_mutex_init(&found->lock, NULL) == 0;
    }
    sp_fase_end();
    if (found == NULL) {
        fprintf(stderr, "companion: %s\n", sp_last_error());
        _exit(wrong);
    }
    check(found);
    /* Signals belong to the program's own threads. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, found) != 0) {
        _exit(wrong);
    }
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
