/* For replica_test.py, which runs it with threads=processes: for each line of standard input a section, a checkpoint, and a wait of so many
 * milliseconds at both levels; prints the codes and the lag. */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include <stillpoint/stillpoint.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
    uint64_t* const word = sp_root("word", sizeof *word);
    int milliseconds = 0;
    while (scanf("%d", &milliseconds) == 1) {
        pthread_mutex_lock(&lock);
        ++*word;
        pthread_mutex_unlock(&lock);
        const int taken = sp_checkpoint();
        const uint64_t epoch = sp_durable_epoch();
        const int here = sp_wait_durable_at(epoch, SP_LEVEL_LOCAL, milliseconds);
        const int both = sp_wait_durable_at(epoch, SP_LEVEL_REMOTE, milliseconds);
        uint64_t lag = 0;
        sp_statistic("replica_lag_epochs", &lag);
        printf("%d %d %d %d\n", taken, here, both, (int)lag);
        fflush(stdout);
    }
    return 0;
}
