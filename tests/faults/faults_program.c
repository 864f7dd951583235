/* A program that things happen to. Its durable state is two counters that are always equal after a FASE. Prints
 * "start KIND count N", where N is what it found, or -1 if the counters differ, and then does what its first argument says. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

struct counters {
    pthread_mutex_t lock;
    long first;
    /* Another page: each commit has more than one page to write. */
    char apart[8192];
    long second;
};

static struct counters* counters;

static void add_one(void)
{
    pthread_mutex_lock(&counters->lock);
    ++counters->first;
    ++counters->second;
    pthread_mutex_unlock(&counters->lock);
}

static int commit(void)
{
    add_one();
    return sp_checkpoint();
}

/* ---- Disks that fail or are full ---- */

/* Commits until one fails; then shows that memory and the calls go on, each with its error value. */
static int commits(int most)
{
    int result = SP_OK;
    for (int i = 0; i < most && result == SP_OK; ++i) {
        result = commit();
        printf("commit %ld result %d\n", counters->first, result);
    }
    if (result == SP_OK) {
        return 0;
    }
    printf("error %s\n", sp_last_error());
    add_one();
    printf("wait %d checkpoint %d count %ld\n", sp_wait_durable(sp_epoch(), 5000), sp_checkpoint(), counters->first);
    return 0;
}

/* Fills memory, commits, waits for a line on its input, fills it again, and commits that if `saves`. */
static int fill_twice(int saves)
{
    enum { blocks = 64, block_bytes = 128 * 1024 };
    char* filled[blocks];
    for (int i = 0; i < blocks; ++i) {
        filled[i] = sp_malloc(block_bytes);
    }
    for (int round = 1; round <= 2; ++round) {
        for (int i = 0; i < blocks; ++i) {
            pthread_mutex_lock(&counters->lock);
            memset(filled[i], round, block_bytes);
            pthread_mutex_unlock(&counters->lock);
        }
        if (round == 1 || saves) {
            printf("commit %d\n", commit());
            fflush(stdout);
        }
        if (round == 1 && getchar() == EOF) {
            return 1;
        }
    }
    return 0;
}

/* Allocates until there is no more; frees; continues. */
static int grow(void)
{
    enum { block_bytes = 256 * 1024 };
    void* last = NULL;
    void* block = NULL;
    int count = 0;
    while ((block = sp_malloc(block_bytes)) != NULL && count < 1000) {
        memset(block, 1, 4096);
        last = block;
        ++count;
    }
    printf("blocks %s errno %d error %s\n", count > 0 && count < 1000 ? "some" : "wrong", errno, sp_last_error());
    sp_free(last);
    printf("again %s\n", sp_malloc(block_bytes) != NULL ? "ok" : "NULL");
    printf("commit %d\n", commit());
    return 0;
}

/* ---- Crashes ---- */

/* A fault at an address near zero that no compiler sees through. */
static void fault(void)
{
    static volatile int* volatile nowhere;
    *nowhere = 1;
}

static pthread_barrier_t both;
static void (*crash)(void);

static void* crash_together(void* unused)
{
    add_one();
    pthread_barrier_wait(&both);
    crash();
    return unused;
}

static int two_threads_crash(const char* how)
{
    crash = strcmp(how, "abort") == 0 ? abort : fault;
    pthread_barrier_init(&both, NULL, 2);
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) {
        pthread_create(&threads[i], NULL, crash_together, NULL);
    }
    pthread_join(threads[0], NULL);
    return 1;
}

static sigjmp_buf after_fault;
static volatile sig_atomic_t handled;

static void on_fault(int number)
{
    handled = number == SIGSEGV ? handled + 1 : -1000;
    siglongjmp(after_fault, 1);
}

static void on_fault_with_facts(int number, siginfo_t* facts, void* context)
{
    handled = context != NULL && facts->si_addr == NULL ? handled : -1000;
    on_fault(number);
}

/* The program's own handler gets its own faults, again and again, and tracked pages stay tracked. */
static int own_handler(const char* how)
{
    if (strcmp(how, "signal") == 0) {
        signal(SIGSEGV, on_fault);
    } else {
        const struct sigaction action = {.sa_sigaction = on_fault_with_facts, .sa_flags = SA_SIGINFO};
        sigaction(SIGSEGV, &action, NULL);
    }
    for (volatile int i = 0; i < 3; ++i) {
        if (sigsetjmp(after_fault, 1) == 0) {
            fault();
        }
        if (commit() != SP_OK) {
            return 1;
        }
    }
    printf("handled %d\n", (int)handled);
    return 0;
}

/* ---- Ends of the process ---- */

static int fork_a_user(void)
{
    const pid_t child = fork();
    if (child == 0) {
        add_one();
        void* block = sp_malloc(100);
        sp_free(block);
        sp_free(sp_malloc(100));
        _exit(sp_checkpoint() == SP_E_DETACHED && sp_root_find("counters", NULL) == counters ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const int result = commit();
    printf("child %d commit %d count %ld\n", status, result, counters->first);
    return 0;
}

static pthread_barrier_t is_held;

static void* hold_for_ever(void* unused)
{
    (void)unused;
    pthread_mutex_lock(&counters->lock);
    ++counters->first;
    ++counters->second;
    pthread_barrier_wait(&is_held);
    while (1) {
        pause();
    }
    return NULL;
}

/* A thread that stays in its section keeps every checkpoint away, and the program ends as if all were well. */
static void let_another_hold(void)
{
    pthread_t holder;
    pthread_barrier_init(&is_held, NULL, 2);
    pthread_create(&holder, NULL, hold_for_ever, NULL);
    pthread_barrier_wait(&is_held);
    exit(0);
}

static void* allocate_for_ever(void* unused)
{
    for (;;) {
        pthread_mutex_lock(&counters->lock);
        sp_free(sp_malloc(90000));
        pthread_mutex_unlock(&counters->lock);
    }
    return unused;
}

static void let_another_allocate(void)
{
    pthread_t allocator;
    pthread_create(&allocator, NULL, allocate_for_ever, NULL);
    usleep(20000);
    exit(5);
}

/* One more than is checkpointed: whether the last one is found tells a clean end from a crash. */
static int end(const char* how, char** argv)
{
    add_one();
    if (strcmp(how, "exit") == 0) {
        exit(5);
    } else if (strcmp(how, "_exit") == 0) {
        _exit(5);
    } else if (strcmp(how, "quick_exit") == 0) {
        quick_exit(5);
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else if (strcmp(how, "null") == 0) {
        fault();
    } else if (strcmp(how, "exec") == 0) {
        execv(argv[0], argv);
    } else if (strcmp(how, "holding") == 0) {
        pthread_mutex_lock(&counters->lock);
        exit(5);
    } else if (strcmp(how, "going") == 0) {
        let_another_allocate();
    } else if (strcmp(how, "held") == 0) {
        let_another_hold();
    }
    return 5;
}

int main(int argc, char** argv)
{
    const char* what = argc > 1 ? argv[1] : "";
    const char* how = argc > 2 ? argv[2] : "";
    counters = sp_root("counters", sizeof *counters);
    if (counters == NULL) {
        fprintf(stderr, "faults_program: %s\n", sp_last_error());
        return 3;
    }
    printf("start %d count %ld\n", (int)sp_start_kind(), counters->first == counters->second ? counters->first : -1);
    fflush(stdout);
    if (strcmp(what, "commits") == 0) {
        return commits(atoi(how));
    } else if (strcmp(what, "grow") == 0) {
        return grow();
    } else if (strcmp(what, "fill_twice") == 0) {
        return fill_twice(strcmp(how, "unsaved") != 0);
    } else if (strcmp(what, "crash") == 0) {
        return commit() != SP_OK || two_threads_crash(how);
    } else if (strcmp(what, "handler") == 0) {
        return own_handler(how);
    } else if (strcmp(what, "fork") == 0) {
        return fork_a_user();
    } else if (strcmp(what, "held") == 0) {
        let_another_hold();
    } else if (strcmp(what, "end") == 0) {
        return commit() != SP_OK || end(how, (char*[]){argc > 3 ? argv[3] : argv[0], NULL});
    }
    return 0;
}
