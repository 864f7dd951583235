/* A program whose pool file, descriptors and memory are tampered with: by itself, as its first argument says, or by the test that reads
 * its output and answers with a line ("wait"). Its durable state is a counter on each of 64 pages. Prints "start KIND count N", N being
 * -1 if the pages differ, and "commit N result R" for each commit. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

enum { pages = 64, page = 4096, cannot = 77 };

struct state {
    struct {
        long count;
        char rest[page - sizeof(long)];
    } on[pages];
    long* extra; /* of a block that the pool grew for, or NULL; its first and last word count too */
};

enum { extra_bytes = 6 << 20, extra_last = extra_bytes / sizeof(long) - 1 };

static struct state* state;

static long count_of(void)
{
    for (int i = 1; i < pages; ++i) {
        if (state->on[i].count != state->on[0].count) {
            return -1;
        }
    }
    if (state->extra != NULL && (state->extra[0] != state->on[0].count || state->extra[extra_last] != state->on[0].count)) {
        return -1;
    }
    return state->on[0].count;
}

static int commit(void)
{
    sp_fase_begin();
    for (int i = 0; i < pages; ++i) {
        ++state->on[i].count;
    }
    if (state->extra != NULL) {
        state->extra[0] = state->extra[extra_last] = state->on[0].count;
    }
    sp_fase_end();
    const int result = sp_checkpoint();
    printf("commit %ld result %d\n", state->on[0].count, result);
    if (result != SP_OK) {
        printf("error %s\n", sp_last_error());
    }
    fflush(stdout);
    return result;
}

/* ---- Memory that is gone ---- */

/* From Linux 6.6's headers. */
struct poison {
    struct uffdio_range range;
    uint64_t mode;
    int64_t updated;
};
#define POISON_REQUEST _IOWR(UFFDIO, 0x08, struct poison)

static void poison(void* address)
{
    const long file = syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API, .features = 1u << 14 /* UFFD_FEATURE_POISON */};
    struct uffdio_register wanted = {.range = {(uintptr_t)address, page}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    struct poison request = {.range = wanted.range, .mode = 0, .updated = 0};
    if (file < 0 || ioctl((int)file, UFFDIO_API, &api) != 0 || ioctl((int)file, UFFDIO_REGISTER, &wanted) != 0 ||
        madvise(address, page, MADV_DONTNEED) != 0 || ioctl((int)file, POISON_REQUEST, &request) != 0) {
        printf("cannot poison: %s\n", strerror(errno));
        fflush(stdout);
        _exit(cannot);
    }
}

/* The begin of the pool's mapping, where its medium is mapped. */
static char* mapping_of(const char* pool)
{
    FILE* maps = fopen("/proc/self/maps", "re");
    char line[4200];
    char* found = NULL;
    while (found == NULL && maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, pool) != NULL) {
            found = (char*)strtoul(line, NULL, 16);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

static int poison_the_medium(const char* pool)
{
    char* mapped = mapping_of(pool);
    if (mapped == NULL) {
        return cannot;
    }
    /* The commit records: every commit writes them. */
    for (int i = 2; i < 6; ++i) {
        poison(mapped + i * page);
    }
    commit();
    return commit() == SP_OK ? 1 : 0;
}

/* ---- Descriptors ---- */

/* Files of the program's own, which must never get bytes of the pool. */
static int own_file(const char* name)
{
    const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(file, "mine", 4) != 4) {
        exit(1);
    }
    return file;
}

static int tamper_with_descriptors(const char* how)
{
    const int keep = own_file("own");
    if (strcmp(how, "closefrom") == 0) {
        closefrom(3);
    } else if (strcmp(how, "close_range") == 0) {
        close_range(3, ~0u, 0);
    } else if (strcmp(how, "close") == 0) {
        for (int i = 3; i < 4096; ++i) {
            close(i);
        }
    } else if (strcmp(how, "dup2") == 0) {
        for (int i = 3; i < 1024; ++i) {
            if (i != keep) {
                dup2(keep, i);
            }
        }
    } else if (strcmp(how, "raw") == 0) {
        syscall(SYS_close_range, 3, ~0u, 0);
    } else if (strcmp(how, "raw dup2") == 0) {
        for (int i = 3; i < 1024; ++i) {
            if (fcntl(i, F_GETFD) >= 0) {
                syscall(SYS_dup3, keep, i, 0);
            }
        }
    }
    for (int i = 0; i < 40; ++i) {
        char name[32];
        snprintf(name, sizeof name, "own.%d", i);
        own_file(name);
    }
    int result = SP_OK;
    for (int i = 0; i < 3 && result == SP_OK; ++i) {
        result = commit();
    }
    printf("grown %s\n", sp_malloc(8 << 20) != NULL ? "yes" : "no");
    return 0;
}

/* ---- A whole life ---- */

static int live(void)
{
    commit();
    if (state->extra == NULL) {
        sp_fase_begin();
        state->extra = sp_malloc(extra_bytes);
        if (state->extra != NULL) {
            state->extra[0] = state->extra[extra_last] = state->on[0].count;
        }
        sp_fase_end();
        printf("grown %s\n", state->extra != NULL ? "yes" : sp_last_error());
    }
    commit();
    return commit() == SP_OK ? 0 : 4;
}

/* ---- A sandbox that closes later ---- */

static int refuse_io_uring(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        return cannot;
    }
    return live();
}

static int wait_for_a_line(void)
{
    char line[100];
    for (;;) {
        printf("ready\n");
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL) {
            return 0;
        }
        commit();
    }
}

int main(int argc, char** argv)
{
    const char* what = argc > 1 ? argv[1] : "";
    const char* how = argc > 2 ? argv[2] : "";
    state = sp_root("state", sizeof *state);
    if (state == NULL) {
        fprintf(stderr, "faults_files: %s\n", sp_last_error());
        return 3;
    }
    printf("start %d count %ld\n", (int)sp_start_kind(), count_of());
    fflush(stdout);
    if (*what == '\0') {
        return 0;
    }
    if (strcmp(what, "live") == 0) {
        return live();
    }
    if (commit() != SP_OK) {
        return 1;
    }
    if (strcmp(what, "wait") == 0) {
        return wait_for_a_line();
    } else if (strcmp(what, "refuse io_uring") == 0) {
        return refuse_io_uring();
    } else if (strcmp(what, "descriptors") == 0) {
        return tamper_with_descriptors(how);
    } else if (strcmp(what, "poison medium") == 0) {
        return poison_the_medium(how);
    } else if (strcmp(what, "poison page") == 0) {
        /* The shadow is page aligned, the structure need not be: a page in its middle. */
        poison((void*)(((uintptr_t)&state->on[20]) & ~(uintptr_t)(page - 1)));
        return (int)count_of();
    }
    return 2;
}
