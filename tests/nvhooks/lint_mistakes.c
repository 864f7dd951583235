/* Every mistake that `stillpoint lint` knows, each on a line that says what must be reported of it, and lines beside them
 * that are right. An argument makes it end in another way. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

struct node {
    struct node *next;
    const char *name;
    void (*call)(void);
    int *where;
    long value;
    char raw[64];
};

SP_PERSISTENT int durable_counter;
SP_PERSISTENT struct node *durable_pointer;
int volatile_counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void callback(void) {}

static void set_value(struct node *node, long value)
{
    node->value = value; /* expect: store */
}

static void outside(struct node *node)
{
    set_value(node, 1);
    for (int i = 0; i < 5; ++i) {
        node->raw[i] = 'x'; /* expect: store */
    }
    memset(node->raw, 0, sizeof node->raw); /* expect: store */
    durable_counter = 2;                    /* expect: store */
    __atomic_store_n(&node->value, 3, __ATOMIC_RELAXED); /* expect: store */
}

static void pointers(struct node *node)
{
    int on_stack = 1;
    pthread_mutex_lock(&lock);
    node->name = "literal";          /* expect: pointer constant */
    node->call = callback;           /* expect: pointer code.*callback */
    node->where = &on_stack;         /* expect: pointer stack */
    node->where = &volatile_counter; /* expect: pointer data.*volatile_counter */
    node->where = malloc(4);         /* expect: pointer heap */
    durable_pointer = (struct node *)&durable_counter; /* expect: pointer data.*durable_counter */
    node->where = (int *)0x500000000000; /* expect: pointer nothing */
    pthread_mutex_unlock(&lock);
}

static void words(struct node *node)
{
    void *block = malloc(8);
    char bytes[16];
    memcpy(bytes, &block, sizeof block);
    memset(bytes + 8, 1, 8);
    pthread_mutex_lock(&lock);
    memcpy(node->raw, bytes, sizeof bytes); /* expect: possible heap */
    node->value = (long)(intptr_t)block;    /* expect: possible heap */
    pthread_mutex_unlock(&lock);
}

static void right(struct node *node)
{
    volatile int here = 7;
    char text[16] = "a short text";
    here = volatile_counter;
    pthread_mutex_lock(&lock);
    node->value = here;
    node->next = node;
    node->where = (int *)&node->value;
    node->where = NULL;
    node->where = (int *)(intptr_t)-1;
    node->where = (int *)(intptr_t)17;
    node->name = node->raw;
    durable_pointer = node;
    durable_counter = 1;
    memcpy(node->raw, text, sizeof text);
    node->value = 0x0000000500000003;
    pthread_mutex_unlock(&lock);
    sp_fase_begin();
    node->value = 4;
    sp_fase_end();
}

static void *in_a_thread(void *argument)
{
    set_value(argument, 9);
    return NULL;
}

int main(int count, char **words_of_command)
{
    const char *ending = count > 1 ? words_of_command[1] : "";
    struct node *node = sp_root("node", sizeof *node);
    if (node == NULL) {
        return 3;
    }
    right(node);
    if (strcmp(ending, "right") == 0) {
        return count > 2 ? 5 : 0;
    }
    outside(node);
    pointers(node);
    words(node);
    pthread_t thread;
    pthread_create(&thread, NULL, in_a_thread, node);
    pthread_join(thread, NULL);
    if (strcmp(ending, "fork") == 0) {
        const pid_t child = fork();
        if (child == 0) {
            node->raw[9] = 1; /* not durable in a child: nothing to report */
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    if (strcmp(ending, "crash") == 0) {
        raise(SIGSEGV);
    }
    return strcmp(ending, "fail") == 0 ? 5 : 0;
}
