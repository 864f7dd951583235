/* Two counters in different pages of durable memory, each marked by hand after it is stored; without a record
 * it cannot run with the tracker hooks.
 *   hooks_counter count   adds 1 to both, checkpoint, prints both
 *   hooks_counter kill    the same, then ends by SIGKILL
 *   hooks_counter forget  the same without a mark of the second: it is then not durable
 *   hooks_counter read    reads both from a file into durable memory, by a call that was not instrumented
 *   hooks_counter locks   holds a mutex that lies next to what it guards while pages are copied; ends by SIGKILL
 *   hooks_counter blocks  makes blocks by sp_calloc and sp_realloc where old bytes lie, checkpoint, SIGKILL
 *   hooks_counter verify  says what is wrong with those blocks
 *   hooks_counter taken POOL  opens the pool itself, after something else was mapped where the card table belongs
 *   hooks_counter fork    a child goes on marking; it ends normally */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
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

struct counters {
    long first;
    char room[8192];
    long second;
    pthread_mutex_t lock;
    long guarded;
    unsigned char* zeroed[4]; /* of different sizes: see block_bytes */
    unsigned char* moved;
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
