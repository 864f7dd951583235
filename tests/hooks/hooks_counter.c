/* Two counters in different pages of durable memory, each marked by hand after it is stored; without a record
 * it cannot run with the tracker hooks.
 *   hooks_counter count   adds 1 to both, checkpoint, prints both
 *   hooks_counter kill    the same, then ends by SIGKILL
 *   hooks_counter forget  the same without a mark of the second: it is then not durable
 *   hooks_counter read    reads both from a file into durable memory, by a call that was not instrumented
 *   hooks_counter locks   holds a mutex that lies next to what it guards while pages are copied; ends by SIGKILL
 *   hooks_counter rwlocks the same with read-write locks; one of them lies across two lines
 *   hooks_counter idle    takes and releases locks of each kind, stores nothing else, and prints how many pages a checkpoint found
 *   hooks_counter free    says whether the read-write locks are
 *   hooks_counter blocks  makes blocks by sp_calloc and sp_realloc where old bytes lie, checkpoint, SIGKILL
 *   hooks_counter verify  says what is wrong with those blocks
 *   hooks_counter taken POOL  opens the pool itself, after something else was mapped where the card table belongs
 *   hooks_counter fork    a child goes on marking; it ends normally */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"
#ifndef WITHOUT_RECORD
#include "marks_by_hand.h"
#else
#include "nvhooks/abi/nvhooks_abi.h"
#include "stillpoint/nvhooks.h"
#endif

struct locks {
    _Alignas(64) pthread_rwlock_t in_a_line;
    char room[64 - sizeof(pthread_rwlock_t)];
    char half_a_line[32];
    pthread_rwlock_t across;
    _Alignas(64) pthread_mutex_t mutex;
    pthread_spinlock_t spinlock;
};
_Static_assert(offsetof(struct locks, across) % 64 + sizeof(pthread_rwlock_t) > 64, "it lies across two lines");

struct counters {
    long first;
    char room[8192];
    long second;
    pthread_mutex_t lock;
    long guarded;
    unsigned char* zeroed[4]; /* of different sizes: see block_bytes */
    unsigned char* moved;
    struct locks locks;
};

static const size_t block_bytes[4] = {3000, 4000, 12000, 100000};
enum { moved_from_bytes = 3000, moved_to_bytes = 30000 };

static void count(struct counters* counters, int forget)
{
    sp_fase_begin();
    counters->first++;
    sp_mark_written(&counters->first, sizeof counters->first);
    counters->second++;
    if (!forget) {
        nvhooks_post_nvm_write(&counters->second, sizeof counters->second);
    }
    sp_fase_end();
}

static void read_from_file(struct counters* counters)
{
    const long values[2] = {41, 42};
    FILE* file = tmpfile();
    if (file == NULL || fwrite(values, sizeof values, 1, file) != 1 || fflush(file) != 0) {
        exit(3);
    }
    sp_fase_begin();
    if (pread(fileno(file), &counters->first, sizeof(long), 0) != sizeof(long)) {
        exit(3);
    }
    rewind(file);
    if (fseek(file, sizeof(long), SEEK_SET) != 0 || fread(&counters->second, sizeof(long), 1, file) != 1) {
        exit(3);
    }
    sp_fase_end();
    fclose(file);
}

static void hold_lock_under_checkpoints(struct counters* counters)
{
    pthread_mutex_lock(&counters->lock);
    counters->guarded++;
    sp_mark_written(&counters->guarded, sizeof counters->guarded);
    usleep(60000); /* The page is copied ahead, the mark taken, and nothing in it is stored any more but by unlock. */
    pthread_mutex_unlock(&counters->lock);
    sp_wait_durable(sp_epoch(), -1);
    raise(SIGKILL);
}

static void hold_rwlocks_under_checkpoints(struct counters* counters)
{
    pthread_rwlock_wrlock(&counters->locks.across);
    pthread_rwlock_rdlock(&counters->locks.in_a_line);
    counters->guarded++;
    sp_mark_written(counters, sizeof *counters);
    usleep(60000);
    pthread_rwlock_unlock(&counters->locks.in_a_line);
    pthread_rwlock_unlock(&counters->locks.across);
    sp_wait_durable(sp_epoch(), -1);
    raise(SIGKILL);
}

static void take_locks(struct locks* locks)
{
    pthread_rwlock_rdlock(&locks->in_a_line);
    pthread_rwlock_unlock(&locks->in_a_line);
    pthread_rwlock_wrlock(&locks->in_a_line);
    pthread_rwlock_unlock(&locks->in_a_line);
    pthread_mutex_lock(&locks->mutex);
    pthread_mutex_unlock(&locks->mutex);
    pthread_spin_lock(&locks->spinlock);
    pthread_spin_unlock(&locks->spinlock);
}

/* Pages that the last of three checkpoints found. */
static int take_locks_and_nothing_else(struct counters* counters)
{
    uint64_t before = 0;
    uint64_t after = 0;
    pthread_spin_init(&counters->locks.spinlock, PTHREAD_PROCESS_PRIVATE);
    sp_mark_written(&counters->locks, sizeof counters->locks);
    for (int i = 0; i < 3; i++) {
        before = after;
        for (int times = 0; times < 100; times++) {
            take_locks(&counters->locks);
        }
        if (sp_checkpoint() != SP_OK || sp_statistic("dirty_pages_total", &after) != SP_OK) {
            return 3;
        }
    }
    printf("%d pages\n", (int)(after - before));
    return 0;
}

static int are_rwlocks_free(struct locks* locks)
{
    const int free = pthread_rwlock_trywrlock(&locks->across) == 0 && pthread_rwlock_trywrlock(&locks->in_a_line) == 0;
    printf("%s\n", free ? "free" : "held");
    return free ? 0 : 1;
}

static unsigned char* filled_block(size_t size_bytes, int byte)
{
    unsigned char* block = sp_malloc(size_bytes);
    memset(block, byte, size_bytes);
    sp_mark_written(block, size_bytes);
    return block;
}

/* Only the library stores into the blocks that come out of this. */
static void make_blocks(struct counters* counters)
{
    sp_fase_begin();
    for (int i = 0; i < 4; i++) {
        counters->zeroed[i] = filled_block(block_bytes[i], 0xff);
    }
    unsigned char* old = filled_block(moved_from_bytes, 7);
    sp_free(filled_block(moved_to_bytes, 0xff));
    sp_fase_end();
    sp_checkpoint();
    sp_fase_begin();
    for (int i = 0; i < 4; i++) {
        sp_free(counters->zeroed[i]);
        counters->zeroed[i] = sp_calloc(1, block_bytes[i]);
    }
    counters->moved = sp_realloc(old, moved_to_bytes);
    sp_mark_written(counters->zeroed, sizeof counters->zeroed);
    sp_mark_written(&counters->moved, sizeof counters->moved);
    sp_fase_end();
}

static int verify_blocks(const struct counters* counters)
{
    for (int i = 0; i < 4; i++) {
        for (size_t at = 0; at < block_bytes[i]; at++) {
            if (counters->zeroed[i][at] != 0) {
                printf("byte %zu of the block of %zu is %d\n", at, block_bytes[i], counters->zeroed[i][at]);
                return 1;
            }
        }
    }
    for (size_t at = 0; at < moved_from_bytes; at++) {
        if (counters->moved[at] != 7) {
            printf("byte %zu of the moved block is %d\n", at, counters->moved[at]);
            return 1;
        }
    }
    return 0;
}

static int open_with_a_taken_table(const char* pool)
{
    void* table = (void*)NVHOOKS_CARD_TABLE_FOR(SP_WINDOW_INDEX);
    if (mmap(table, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != table) {
        return 3;
    }
    const int opened = sp_open(pool, "tracker=auto");
    printf("%d %s\n", opened, sp_last_error());
    return 0;
}

int main(int argc, char** argv)
{
    const char* what = argc > 1 ? argv[1] : "count";
    if (strcmp(what, "taken") == 0) {
        return open_with_a_taken_table(argv[2]);
    }
    struct counters* counters = sp_root("counters", sizeof *counters);
    if (counters == NULL) {
        fprintf(stderr, "hooks_counter: %s\n", sp_last_error());
        return 3;
    }
    if (strcmp(what, "verify") == 0) {
        return verify_blocks(counters);
    }
    if (strcmp(what, "idle") == 0) {
        return take_locks_and_nothing_else(counters);
    }
    if (strcmp(what, "free") == 0) {
        return are_rwlocks_free(&counters->locks);
    }
    if (strcmp(what, "rwlocks") == 0) {
        hold_rwlocks_under_checkpoints(counters);
    }
    if (strcmp(what, "blocks") == 0) {
        make_blocks(counters);
    } else if (strcmp(what, "read") == 0) {
        read_from_file(counters);
    } else if (strcmp(what, "locks") == 0) {
        hold_lock_under_checkpoints(counters);
    } else {
        count(counters, strcmp(what, "forget") == 0);
    }
    sp_checkpoint();
    printf("%ld %ld mutex %d\n", counters->first, counters->second, counters->lock.__data.__lock);
    fflush(stdout);
    if (strcmp(what, "fork") == 0) {
        const pid_t child = fork();
        if (child == 0) {
            count(counters, 0);
            _exit(counters->first == counters->second ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
    }
    if (strcmp(what, "kill") == 0 || strcmp(what, "forget") == 0 || strcmp(what, "blocks") == 0) {
        raise(SIGKILL);
    }
    return 0;
}
