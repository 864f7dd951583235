/* Takes the library's messages by a callback, which itself takes a lock and calls the library: `cli_messages POOL`. Prints how many of each
 * level came, and ends with 0 if they were whole. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counts[5];
static int torn;

static void take(void* context, sp_log_level level, const char* line, size_t length)
{
    uint64_t epochs = 0;
    pthread_mutex_lock(&lock);
    counts[level]++;
    torn += context != counts || strlen(line) != length || strchr(line, '\n') != NULL || length == 0;
    pthread_mutex_unlock(&lock);
    if (sp_statistic("epoch", &epochs) == SP_OK) {
        sp_free(sp_malloc(100)); /* begins a section: no lock of the library is held here */
    }
}

int main(int argc, char** argv)
{
    if (argc != 2 || sp_set_log_callback(&take, counts) != SP_OK ||
        sp_open(argv[1], "log_level=debug interval_ms=10 durability=process") != SP_OK) {
        return fprintf(stderr, "cli_messages: %s\n", sp_last_error()), 1;
    }
    for (int i = 0; i < 20; ++i) {
        sp_fase_begin();
        ++*(long*)sp_root("count", sizeof(long));
        sp_fase_end();
        if (sp_checkpoint() != SP_OK) {
            return 2;
        }
    }
    if (sp_set_log_callback(NULL, NULL) != SP_OK) {
        return 3;
    }
    const long at_the_end = counts[SP_LOG_DEBUG];
    sp_checkpoint();
    printf("%ld info %ld debug\n", counts[SP_LOG_INFO], at_the_end);
    return torn != 0 || at_the_end < 20 || counts[SP_LOG_DEBUG] != at_the_end || counts[SP_LOG_INFO] < 1 ? 4 : 0;
}
