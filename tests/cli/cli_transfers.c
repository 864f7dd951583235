/* Two accounts whose sum must stay as it is, and a count of transfers: a program for crashtest, and its checker.
 *   cli_transfers good [N]   transfers in one failure-atomic section; N of them, or forever
 *   cli_transfers torn       in two: a crash between them loses money
 *   cli_transfers early      tells the world of a transfer before it is durable
 *   cli_transfers verify     exit code 1: the sum is wrong, or a transfer is missing that the world was told of
 * The world is a file in the folder CRASHTEST_FOLDER. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

enum { sum_of_both = 1000 };

struct bank {
    long made;
    long first;
    char room[8192]; /* the accounts lie in different pages */
    long second;
    long transfers;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bank* bank;
static int world = -1;

static void open_world(void)
{
    char path[4096];
    const char* folder = getenv("CRASHTEST_FOLDER");
    if (folder != NULL) {
        snprintf(path, sizeof path, "%s/told", folder);
        world = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
}

static void tell_world(long transfers)
{
    if (world >= 0 && pwrite(world, &transfers, sizeof transfers, 0) != sizeof transfers) {
        exit(3);
    }
}

static long told(void)
{
    long transfers = 0;
    return world >= 0 && pread(world, &transfers, sizeof transfers, 0) == sizeof transfers ? transfers : 0;
}

static void transfer(long amount, int torn)
{
    pthread_mutex_lock(&lock);
    bank->first -= amount;
    if (torn) {
        pthread_mutex_unlock(&lock);
        usleep(2000);
        pthread_mutex_lock(&lock);
    }
    bank->second += amount;
    bank->transfers++;
    pthread_mutex_unlock(&lock);
}

static int verify(void)
{
    const long sum = bank->made ? bank->first + bank->second : sum_of_both;
    if (sum != sum_of_both) {
        printf("the sum is %ld, not %d\n", sum, sum_of_both);
        return 1;
    }
    if (bank->transfers < told()) {
        printf("%ld transfers of %ld that were told of\n", bank->transfers, told());
        return 1;
    }
    return 0;
}

int main(int argc, char** argv)
{
    const char* what = argc > 1 ? argv[1] : "good";
    const long last = argc > 2 ? atol(argv[2]) : 0;
    open_world();
    bank = sp_root("bank", sizeof *bank);
    if (bank == NULL) {
        fprintf(stderr, "cli_transfers: %s\n", sp_last_error());
        return 3;
    }
    if (strcmp(what, "verify") == 0) {
        return verify();
    }
    if (!bank->made) {
        sp_fase_begin();
        bank->first = sum_of_both;
        bank->made = 1;
        sp_fase_end();
    }
    for (long done = 1; last == 0 || done <= last; done++) {
        transfer(done % 7 - 3, strcmp(what, "torn") == 0);
        const long transfers = bank->transfers;
        if (strcmp(what, "early") == 0) {
            tell_world(transfers);
            usleep(1000);
        } else if (done % 64 == 0 && sp_wait_durable(sp_epoch(), -1) == 0) {
            tell_world(transfers);
        }
    }
    return 0;
}
