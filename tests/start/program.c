/* Says how its durable memory began, counts its runs in a named object, and ends as it is told:
 *   start_program [normal|crash|untouched|open POOL] */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "stillpoint/respct.h"
#include "stillpoint/stillpoint.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(int argc, char** argv)
{
    const char* const end = argc > 1 ? argv[1] : "normal";
    if (strcmp(end, "untouched") == 0) {
        return 0;
    }
    const int error = strcmp(end, "open") == 0 ? sp_open(argv[2], NULL) : SP_OK;
    if (error != SP_OK) {
        fprintf(stderr, "error %d: %s\n", error, sp_last_error());
        return 1;
    }
    const int kind = (int)sp_start_kind();
    pthread_mutex_lock(&lock);
    int* const runs = sp_root("runs", sizeof *runs);
    const int now = ++*runs;
    sp_respct_add_modified(runs, sizeof *runs); /* for the engine respct, which is told what is written */
    pthread_mutex_unlock(&lock);
    if (sp_start_kind() != SP_START_VOLATILE) {
        sp_checkpoint();
    }
    printf("start %d run %d\n", kind, now);
    fflush(stdout);
    if (strcmp(end, "crash") == 0) {
        raise(SIGKILL);
    }
    return 0;
}
