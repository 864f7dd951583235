/* An ordinary C program that knows nothing of Stillpoint. It is run with the library preloaded, without a pool and
 * with one: it must behave as it does alone. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 4, turns = 20000, items = 2000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long counter;
static int queued;

static void* count(void* argument)
{
    for (int i = 0; i < turns; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    }
    return argument;
}

static void* consume(void* argument)
{
    for (int i = 0; i < items; i++) {
        pthread_mutex_lock(&mutex);
        while (queued == 0) {
            pthread_cond_wait(&changed, &mutex);
        }
        queued--;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

static void produce(void)
{
    for (int i = 0; i < items; i++) {
        pthread_mutex_lock(&mutex);
        while (queued > 3) {
            pthread_cond_wait(&changed, &mutex);
        }
        queued++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
}

static void unlock(void* argument) { pthread_mutex_unlock(argument); }

static void* wait_for_ever(void* argument)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    while (argument == NULL) {
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_cleanup_pop(1);
    return NULL;
}

int main(void)
{
    pthread_t ids[threads];
    for (int i = 0; i < threads; i++) {
        pthread_create(&ids[i], NULL, count, NULL);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    pthread_create(&ids[0], NULL, consume, NULL);
    produce();
    pthread_join(ids[0], NULL);
    pthread_create(&ids[0], NULL, wait_for_ever, NULL);
    usleep(1000);
    pthread_cancel(ids[0]);
    void* result = NULL;
    pthread_join(ids[0], &result);
    const int free_again = pthread_mutex_trylock(&mutex) == 0;
    const int child_status = system("exit 7");
    const pid_t child = fork();
    if (child == 0) {
        _exit(8);
    }
    int fork_status = 0;
    waitpid(child, &fork_status, 0);
    printf("%ld %d %d %d %d %d\n", counter, queued, result == PTHREAD_CANCELED, free_again, WEXITSTATUS(child_status),
           WEXITSTATUS(fork_status));
    return 0;
}
