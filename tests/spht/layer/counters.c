/* Threads whose transactions meet. Each moves money in a list that is sorted by balance, so every transaction takes the list apart; a
 * transaction that saw half of another one would follow a wrong pointer, or find a wrong sum, and says so at once.
 * Usage: counters THREADS MOVES [die | irrevocable | atomic | jump]. "done THREAD COUNT" after each move that has returned. */

#include "counters.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spht-hooks.h"

static struct root* all;
static long moves;
static const char* mode = "";

SP_TM_PURE static void die(void) { kill(getpid(), SIGKILL); }
SP_TM_PURE static void fail(const char* what)
{
    printf("BROKEN: %s\n", what);
    fflush(stdout);
    _exit(3);
}

static void check(void)
{
    long sum = 0, people = 0, before = -1000000;
    for (const struct account* one = all->first; one != NULL; one = one->richer) {
        if (one->balance < before)
            fail("the list is not sorted");
        before = one->balance;
        sum += one->balance;
        if (++people > all->people)
            fail("the list does not end");
    }
    if (sum != all->total || people != all->people)
        fail("the sum is another one");
}

static void make(void* unused)
{
    (void)unused;
    if (all->people != 0)
        return;
    for (long i = 0; i < PEOPLE; ++i) {
        struct account* one = sp_calloc(1, sizeof *one);
        one->balance = 1000 - i;
        snprintf(one->name, sizeof one->name, "%ld", i); /* makes it irrevocable */
        one->richer = all->first;
        all->first = one;
        all->total += one->balance;
    }
    all->people = PEOPLE;
}

struct task {
    long thread, number;
    unsigned long random;
    long seen;
    jmp_buf out;
};

static void body(void* argument)
{
    struct task* task = argument;
    check();
    move(all, (long)(task->random % PEOPLE), (long)(task->random / 64 % PEOPLE), (long)(task->random / 4096 % 9));
    check();
    task->seen = looks(all);
    all->left[task->thread][0]++;
    if (!strcmp(mode, "die") && task->number == moves / 2)
        die();
    if (!strcmp(mode, "atomic"))
        all->atomic++;
    if (!strcmp(mode, "irrevocable"))
        printf("inside %ld\n", all->left[task->thread][0]);
    if (!strcmp(mode, "jump"))
        longjmp(task->out, 1);
    all->right[task->thread][0]++;
}

static void* work(void* thread)
{
    struct task task = {.thread = (long)thread, .random = (unsigned long)thread + (unsigned long)all->moved * 7919};
    if (setjmp(task.out) != 0)
        return NULL;
    for (task.number = 0; task.number < moves; ++task.number) {
        task.random = task.random * 6364136223846793005ul + 1442695040888963407ul;
        int error = sp_tm_run(body, &task, 0);
        if (error != SP_OK)
            fail(sp_error_string(error));
        printf("done %ld %ld\n", (long)thread, task.number + 1);
    }
    return NULL;
}

int main(int count, char** words)
{
    setlinebuf(stdout);
    all = sp_root("counters", sizeof *all);
    if (all == NULL || count < 3)
        return fprintf(stderr, "%s\n", sp_last_error()), 1;
    moves = atol(words[2]);
    mode = count > 3 ? words[3] : "";
    if (sp_tm_run(make, NULL, 0) != SP_OK)
        return 1;
    check();
    for (int i = 0; i < 8; ++i)
        if (all->left[i][0] != all->right[i][0])
            fail("half of a transaction is there");
    printf("found %ld %ld\n", all->left[0][0], all->left[1][0]);
    pthread_t threads[8];
    long number = atol(words[1]);
    for (long i = 0; i < number; ++i)
        pthread_create(&threads[i], NULL, work, (void*)i);
    for (long i = 0; i < number; ++i)
        pthread_join(threads[i], NULL);
    check();
    printf("whole %ld\n", (long)all->atomic);
    return 0;
}
