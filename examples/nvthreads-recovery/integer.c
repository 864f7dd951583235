/* nvthreads-recovery: the recovery interface of NVthreads, as in Figure 2 of the PMThreads paper.
 * The first run allocates a durable integer with a name; a run after a crash finds it by that name.
 *
 *   stillpoint run --pool integer.pool -- nvthreads-recovery 5      count to 5 and crash (abort)
 *   stillpoint run --pool integer.pool -- nvthreads-recovery 5      "recovered 5", count to 10, crash
 *
 * The figure's own program passes an uninitialised pointer to nvrecover; here it gets NULL ("no copy, please")
 * and the durable object itself is used. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "stillpoint/nvthreads.h"
#include "stillpoint/stillpoint.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(int count, char** words)
{
    const int steps = count > 1 ? atoi(words[1]) : 5;
    int* integer = NULL;
    if (crashed()) {
        integer = nvrecover(NULL, sizeof *integer, "Integer");
    }
    if (integer != NULL) {
        printf("nvthreads-recovery: recovered %d\n", *integer);
    } else {
        integer = nvmalloc(sizeof *integer, "Integer");
        puts("nvthreads-recovery: allocated");
    }
    if (integer == NULL) {
        perror("nvthreads-recovery");
        return EXIT_FAILURE;
    }
    for (int i = 0; i < steps; ++i) {
        pthread_mutex_lock(&lock); /* a FASE, as in the papers: from lock to unlock */
        ++*integer;
        pthread_mutex_unlock(&lock);
    }
    /* Not in the papers: wait for the checkpoint, so that the crash below shows what survives and not
     * what the last interval loses. In a program without a pool there is nothing to wait for. */
    if (sp_checkpoint() == SP_OK) {
        printf("nvthreads-recovery: %d is durable; crashing now\n", *integer);
        fflush(stdout);
        abort();
    }
    printf("nvthreads-recovery: counted to %d in volatile memory\n", *integer);
    return EXIT_SUCCESS;
}
