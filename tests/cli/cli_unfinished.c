/* Leaves a pool with an epoch that is durable and work that is not: blocks allocated and freed after the checkpoint, and a lock in
 * durable memory that is held. Then it ends by SIGKILL; with the argument "look", before it does anything, with code 0. Compiled
 * with WITH_GLOBALS it has durable globals, with other sizes than before where that is 2. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stillpoint/stillpoint.h"

#if defined(WITH_GLOBALS)
SP_PERSISTENT long numbers[WITH_GLOBALS] = {7};
#endif

enum { count = 400 };

struct state {
    pthread_mutex_t lock;
    void* blocks[count];
};

static void replace_some(struct state* state, int step)
{
    for (int i = 0; i < count; i += step) {
        sp_free(state->blocks[i]);
        state->blocks[i] = sp_malloc((size_t)(16 << i % 8));
        if (state->blocks[i] == NULL) {
            fprintf(stderr, "cli_unfinished: %s\n", sp_last_error());
            exit(3);
        }
        memset(state->blocks[i], i, 16);
    }
}

int main(int argc, char** argv)
{
    printf("run start %d\n", (int)sp_start_kind());
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "look") == 0) {
        return 0;
    }
    struct state* state = sp_root("state", sizeof *state);
    if (state == NULL) {
        return 3;
    }
    sp_fase_begin();
    replace_some(state, 1);
    sp_fase_end();
    if (sp_checkpoint() != SP_OK) {
        return 4;
    }
    replace_some(state, 2);
    pthread_mutex_lock(&state->lock);
#if defined(WITH_GLOBALS)
    ++numbers[0];
#endif
    raise(SIGKILL);
    return 5;
}
