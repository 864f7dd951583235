/* durable-globals: a global variable that survives. Nothing is allocated and nothing is moved: the program
 * marks its variable, and changes it under a mutex as it always did.
 *
 *   stillpoint run --pool counter.pool -- durable-globals      prints 1, then 2, then 3, ... */

#include <pthread.h>
#include <stdio.h>

#include "stillpoint/stillpoint.h"

SP_PERSISTENT unsigned long runs = 0;

/* The mutex may stay volatile: what matters is that the variable is written while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
    pthread_mutex_lock(&lock);
    const unsigned long now = ++runs;
    pthread_mutex_unlock(&lock);
    printf("durable-globals: run number %lu\n", now);
    return 0;
}
