/* For restart_test.py: stores in one way, then dies by SIGKILL at once. Prints first what it has found. */

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nvthreads-hooks.h>
#include <stillpoint/nvthreads.h>

struct root {
    uint64_t value, other;
};

static struct root* root;
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static sem_t go_on;

static void in_section(uint64_t value)
{
    pthread_mutex_lock(&outer);
    root->value = value;
    root->other = ~value;
    pthread_mutex_unlock(&outer);
}

static void* section_of_a_thread(void* unused)
{
    in_section(7);
    return unused;
}

static void* store_and_end(void* unused)
{
    root->value = 7;
    root->other = ~UINT64_C(7);
    return unused;
}

/* Builds on a section that never ends. */
static void* build_on_open_section(void* unused)
{
    sem_wait(&go_on);
    pthread_mutex_lock(&inner);
    root->other = root->value;
    pthread_mutex_unlock(&inner);
    return unused;
}

int main(int count, char** arguments)
{
    const char* how = count > 1 ? arguments[1] : "look";
    pthread_t thread;
    root = sp_root("root", sizeof *root);
    if (root == NULL) {
        fprintf(stderr, "%s\n", sp_last_error());
        return 1;
    }
    printf("%llu %d %d\n", (unsigned long long)root->value, root->other == ~root->value, (int)crashed());
    fflush(stdout);
    if (strcmp(how, "look") == 0) {
        return 0;
    }
    if (strcmp(how, "section") == 0) {
        in_section(7);
    } else if (strcmp(how, "unfinished") == 0) {
        in_section(7);
        pthread_mutex_lock(&outer);
        root->value = 8;
        usleep(50000);
    } else if (strcmp(how, "waited") == 0) {
        in_section(7);
        if (sp_wait_durable(sp_epoch(), 60000) != SP_OK) {
            return 1;
        }
    } else if (strcmp(how, "plain-waited") == 0) {
        (void)store_and_end(NULL);
        if (sp_wait_durable(sp_epoch(), 60000) != SP_OK) {
            return 1;
        }
    } else if (strcmp(how, "plain-joined") == 0) {
        pthread_create(&thread, NULL, store_and_end, NULL);
        pthread_join(thread, NULL);
        pthread_mutex_lock(&outer);
        pthread_mutex_unlock(&outer);
    } else if (strcmp(how, "plain-then-thread") == 0) {
        root->value = 5;
        pthread_create(&thread, NULL, section_of_a_thread, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(how, "open") == 0) {
        in_section(7);
        sem_init(&go_on, 0, 0);
        pthread_create(&thread, NULL, build_on_open_section, NULL);
        pthread_mutex_lock(&outer);
        pthread_mutex_lock(&inner);
        root->value = 9;
        pthread_mutex_unlock(&inner);
        sem_post(&go_on);
        usleep(100000);
    } else if (strcmp(how, "wait-inside") == 0) {
        pthread_mutex_lock(&outer);
        printf("%d\n", sp_wait_durable(sp_epoch(), 1000) == SP_E_INSIDE_FASE);
        fflush(stdout);
    }
    kill(getpid(), SIGKILL);
    return 0;
}
