/* An auction house in plain C: durable transactions through `stillpoint cc --runtime=spht` [stillpoint/itm.h].
 *
 *     auction --pool house.pool --bids 100000 --acknowledge bids.txt     kill it, start it again
 *
 * Bidders have money, and lots have a highest bid. The money of a highest bid belongs to the lot until another bidder bids more; then its
 * bidder has it back. A lot keeps its last bids in a list, newest first. All that one bid changes is one transaction: place_bid() and
 * what it calls are ordinary functions, which read and write memory as usual. check_house() adds up the money at every start. Each
 * thread counts its bids in the same transaction; with --acknowledge it writes the number down in an ordinary file after the
 * transaction has returned, and a restart compares. */

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spht-hooks.h"

enum { lots = 40, bidders = 500, threads_max = 16, kept_bids = 8, money_of_a_bidder = 100000, exit_broken = 3, exit_usage = 64 };

typedef struct bid {
    struct bid* before;
    struct bidder* by;
    uint64_t amount;
} bid;

typedef struct bidder {
    uint64_t money;
    uint64_t bids, wins; /* wins: lots on which the bidder's bid is the highest one */
    char name[16];
} bidder;

typedef struct lot {
    bid* highest;
    uint64_t bids;
    uint64_t rule; /* which of step_of */
} lot;

/* The object after the root "house". */
typedef struct house {
    bidder people[bidders];
    lot lots[lots];
    uint64_t is_open;
    struct {
        _Alignas(64) uint64_t bids;
    } clerks[threads_max];
} house;

/* How much more a bid has to be, by the lot's rule: found through a pointer, inside transactions. */
static uint64_t small_step(const lot* one) { return one->highest == NULL ? 1 : 1 + one->highest->amount / 100; }
static uint64_t large_step(const lot* one) { return one->highest == NULL ? 50 : 10 + one->highest->amount / 10; }
static uint64_t (*const step_of[])(const lot* one) = {small_step, large_step};

static void open_house(void* argument)
{
    house* all = argument;
    if (all->is_open != 0) {
        return;
    }
    for (unsigned i = 0; i < bidders; ++i) {
        all->people[i].money = money_of_a_bidder;
        strcpy(all->people[i].name, i % 2 == 0 ? "an even bidder" : "an odd bidder");
    }
    for (unsigned i = 0; i < lots; ++i) {
        all->lots[i].rule = i % 2;
    }
    all->is_open = 1;
}

/* Keeps the newest bids of a lot only: the others are freed with the transaction. */
static void forget_old_bids(lot* one)
{
    bid** at = &one->highest;
    for (unsigned kept = 0; *at != NULL && kept < kept_bids; ++kept) {
        at = &(*at)->before;
    }
    while (*at != NULL) {
        bid* const old = *at;
        *at = old->before;
        sp_free(old);
    }
}

typedef struct wanted_bid {
    house* all;
    uint64_t clerk, bidder, lot;
    bool is_accepted;
} wanted_bid;

/* One transaction. */
static void place_bid(void* argument)
{
    wanted_bid* const wanted = argument;
    lot* const one = &wanted->all->lots[wanted->lot];
    bidder* const by = &wanted->all->people[wanted->bidder];
    const uint64_t amount = (one->highest == NULL ? 0 : one->highest->amount) + step_of[one->rule](one);
    wanted->all->clerks[wanted->clerk].bids++;
    wanted->is_accepted = by->money >= amount;
    if (!wanted->is_accepted) {
        return;
    }
    bid* const made = sp_malloc(sizeof *made);
    if (made == NULL) {
        sp_tm_cancel();
    }
    if (one->highest != NULL) {
        one->highest->by->money += one->highest->amount;
        one->highest->by->wins--;
    }
    *made = (bid){one->highest, by, amount};
    by->money -= amount;
    by->bids++;
    by->wins++;
    one->highest = made;
    one->bids++;
    if (one->bids % kept_bids == 0) {
        forget_old_bids(one);
    }
    if (amount > money_of_a_bidder / 2) { /* too dear: the lot begins again */
        by->money += amount;
        by->wins--;
        one->highest = NULL;
        for (bid* old = made; old != NULL;) {
            bid* const before = old->before;
            sp_free(old);
            old = before;
        }
    }
}

/* No thread may be running. False: a transaction was half done. */
static bool check_house(const house* all)
{
    uint64_t money = 0;
    uint64_t wins = 0;
    for (unsigned i = 0; i < bidders; ++i) {
        money += all->people[i].money;
        wins += all->people[i].wins;
    }
    for (unsigned i = 0; i < lots; ++i) {
        uint64_t above = UINT64_MAX;
        if (all->lots[i].highest != NULL) {
            money += all->lots[i].highest->amount;
            wins--;
        }
        for (const bid* one = all->lots[i].highest; one != NULL; one = one->before) {
            if (one->amount >= above) {
                return false;
            }
            above = one->amount;
        }
    }
    return wins == 0 && money == (uint64_t)bidders * money_of_a_bidder;
}

typedef struct clerk {
    house* all;
    uint64_t number;
    uint64_t bids;   /* to take in all, earlier runs included */
    int acknowledge; /* a file, or -1 */
    uint64_t random;
} clerk;

static uint64_t next_random(uint64_t* state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717) >> 20;
}

static void* run_clerk(void* argument)
{
    clerk* const self = argument;
    uint64_t done = self->all->clerks[self->number].bids; /* No other thread writes it. */
    while (done < self->bids) {
        wanted_bid one = {self->all, self->number, next_random(&self->random) % bidders, next_random(&self->random) % lots, false};
        const int error = sp_tm_run(place_bid, &one, 0);
        if (error != SP_OK) {
            fprintf(stderr, "auction: %s\n", sp_error_string(error));
            exit(1);
        }
        ++done; /* Durable from here on. */
        char line[64];
        const int length = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 "\n", self->number, done);
        if (self->acknowledge >= 0 && write(self->acknowledge, line, (size_t)length) != length) {
            perror("auction: the file of acknowledgements");
            exit(1);
        }
    }
    return NULL;
}

/* False: the file has a bid that is not in the pool. */
static bool has_acknowledged(const house* all, const char* path)
{
    FILE* const file = fopen(path, "r");
    char line[64];
    bool has_all = true;
    while (file != NULL && fgets(line, sizeof line, file) != NULL && strchr(line, '\n') != NULL) {
        char* rest = line;
        const uint64_t number = strtoull(line, &rest, 10);
        const uint64_t bids = strtoull(rest, NULL, 10);
        if (number < threads_max && all->clerks[number].bids < bids) {
            printf("auction: LOST: clerk %" PRIu64 " has acknowledged bid %" PRIu64 "\n", number, bids);
            has_all = false;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return has_all;
}

static int run(house* all, uint64_t threads, uint64_t bids, const char* acknowledge_path)
{
    if (sp_tm_run(open_house, all, 0) != SP_OK) {
        fprintf(stderr, "auction: %s\n", sp_last_error());
        return 1;
    }
    if (!check_house(all)) {
        printf("auction: BROKEN at the start\n");
        return exit_broken;
    }
    int acknowledge = -1;
    if (acknowledge_path != NULL) {
        if (!has_acknowledged(all, acknowledge_path)) {
            return exit_broken;
        }
        acknowledge = open(acknowledge_path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    }
    clerk clerks[threads_max];
    pthread_t running[threads_max];
    for (uint64_t i = 0; i < threads; ++i) {
        clerks[i] = (clerk){all, i, bids / threads, acknowledge, (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + all->clerks[i].bids};
        if (pthread_create(&running[i], NULL, run_clerk, &clerks[i]) != 0) {
            perror("auction: a thread");
            return 1;
        }
    }
    uint64_t taken = 0;
    for (uint64_t i = 0; i < threads; ++i) {
        pthread_join(running[i], NULL);
        taken += all->clerks[i].bids;
    }
    if (!check_house(all)) {
        printf("auction: BROKEN at the end\n");
        return exit_broken;
    }
    printf("auction: done, %" PRIu64 " bids\n", taken);
    return 0;
}

int main(int count, char** words)
{
    const char* pool = NULL;
    const char* acknowledge = NULL;
    uint64_t bids = 10000;
    uint64_t threads = 4;
    for (int i = 1; i < count; i += 2) {
        const char* const value = i + 1 < count ? words[i + 1] : "";
        if (strcmp(words[i], "--pool") == 0) {
            pool = value;
        } else if (strcmp(words[i], "--acknowledge") == 0) {
            acknowledge = value;
        } else if (strcmp(words[i], "--bids") == 0) {
            bids = strtoull(value, NULL, 10);
        } else if (strcmp(words[i], "--threads") == 0) {
            threads = strtoull(value, NULL, 10);
        } else {
            threads = 0;
        }
        if (threads == 0 || threads > threads_max) {
            fprintf(stderr, "usage: auction [--pool FILE] [--bids N] [--threads N] [--acknowledge FILE]\n");
            return exit_usage;
        }
    }
    if (pool != NULL && sp_open(pool, "engine=spht") != SP_OK) {
        fprintf(stderr, "auction: %s\n", sp_last_error());
        return 1;
    }
    house* const all = sp_root("house", sizeof *all);
    if (all == NULL) {
        fprintf(stderr, "auction: %s\n", sp_last_error());
        return 1;
    }
    return run(all, threads, bids, acknowledge);
}
