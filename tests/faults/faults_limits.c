/* A program under a limit of file sizes (RLIMIT_FSIZE). Its own SIGXFSZ is counted, or, where the first argument begins with "blocked",
 * blocked and looked for: what Stillpoint writes must neither raise it nor take away one that the program has made.
 *   grow           allocates until there is no more
 *   lower BYTES    sets the limit when the pool is open, and takes checkpoints under it */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    ++signals;
}

static int is_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ);
}

static void grow(void)
{
    enum { block_bytes = 1 << 20 };
    long blocks = 0;
    char* block;
    while ((block = sp_malloc(block_bytes)) != NULL) {
        memset(block, 1, block_bytes);
        ++blocks;
    }
    printf("blocks %d errno %d error %s\n", blocks > 0, errno, sp_last_error());
    printf("checkpoint %d\n", sp_checkpoint());
}

static void take_checkpoints(void)
{
    for (int i = 0; i < 3; ++i) {
        char* block = sp_malloc(1 << 20);
        if (block != NULL) {
            memset(block, i, 1 << 20);
        }
        printf("checkpoint %d\n", sp_checkpoint());
    }
    printf("error %s\n", sp_last_error());
}

/* A write of the program's own beyond the limit raises its signal, as ever. */
static void go_beyond_the_limit(const char* path)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    const int file = open(path, O_CREAT | O_RDWR, 0600);
    const ssize_t written = pwrite(file, "x", 1, (off_t)limit.rlim_cur);
    printf("own write %d\n", (int)written);
    close(file);
}

int main(int argc, char** argv)
{
    const int blocked = argc > 2 && strcmp(argv[2], "blocked") == 0;
    if (blocked) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGXFSZ);
        sigprocmask(SIG_BLOCK, &set, NULL);
    } else {
        signal(SIGXFSZ, count_signal);
    }
    printf("start %d\n", (int)sp_start_kind());
    if (strcmp(argv[1], "grow") == 0) {
        grow();
    } else {
        const struct rlimit limit = {(rlim_t)atol(argv[1]), RLIM_INFINITY};
        sp_root("something", 100);
        setrlimit(RLIMIT_FSIZE, &limit);
        take_checkpoints();
    }
    printf("signals %d pending %d\n", (int)signals, is_pending());
    go_beyond_the_limit("own.file");
    printf("signals %d pending %d\n", (int)signals, is_pending());
    sp_malloc(64 << 20);
    printf("signals %d pending %d\n", (int)signals, is_pending());
    return 0;
}
