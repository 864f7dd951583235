/* Things that programs may do to durable memory besides reading into it: io_other WAY. Each reports its outcome. */
#include <errno.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

enum { page_bytes = 4096 };

static char* page;

static void store(char value)
{
    sp_fase_begin();
    memset(page, value, page_bytes);
    sp_fase_end();
}

/* Registers a buffer with a ring that has no descriptor afterwards: it cannot be found. */
static int pin(void)
{
    struct io_uring_params facts;
    memset(&facts, 0, sizeof facts);
    const int ring = (int)syscall(SYS_io_uring_setup, 4, &facts);
    const size_t bytes = 1 << 20;
    const struct iovec part = {mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes};
    struct io_uring_rsrc_update self = {.offset = UINT32_MAX, .data = (unsigned)ring};
    if (ring < 0 || syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &part, 1) != 0 ||
        syscall(SYS_io_uring_register, ring, IORING_REGISTER_RING_FDS, &self, 1) != 1) {
        printf("skipped: %s\n", strerror(errno));
        return 77;
    }
    close(ring);
    for (int i = 0; i < 30; ++i) {
        store((char)i);
        usleep(100000);
    }
    puts("done");
    return 0;
}

/* A child traces this process while that works, as a debugger does. */
static int traced(void)
{
    int ready[2];
    if (pipe(ready) != 0) {
        return 2;
    }
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
        char answer = ptrace(PTRACE_SEIZE, parent, NULL, NULL) == 0 ? 'y' : 'n';
        syscall(SYS_write, ready[1], &answer, 1);
        for (int status = 0; waitpid(parent, &status, __WALL) == parent && WIFSTOPPED(status);) {
            /* The signals of this process reach it: with the tracker mprotect every first store to a page is one. */
            ptrace(PTRACE_CONT, parent, NULL, (void*)(intptr_t)(status >> 16 == 0 ? WSTOPSIG(status) : 0));
        }
        syscall(SYS_exit_group, 0);
    }
    char answer = 0;
    if (read(ready[0], &answer, 1) != 1 || answer != 'y') {
        printf("skipped: ptrace is not allowed\n");
        kill(child, SIGKILL);
        return 77;
    }
    for (int i = 0; i < 15; ++i) {
        store((char)i);
        usleep(100000);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    puts("done");
    return 0;
}

int main(int argc, char** argv)
{
    const char* const way = argc > 1 ? argv[1] : "";
    char** const root = sp_root("other", sizeof *root);
    if (root == NULL) {
        fprintf(stderr, "io_other: %s\n", sp_last_error());
        return 2;
    }
    if (*root == NULL) {
        sp_fase_begin();
        *root = sp_aligned_alloc(page_bytes, 4 * page_bytes);
        memset(*root, 0, 4 * page_bytes);
        sp_fase_end();
    }
    page = *root;
    return strcmp(way, "pin") == 0 ? pin() : strcmp(way, "traced") == 0 ? traced() : 2;
}
