/* A stock exchange whose order book survives kill -9: transactions of the language [GCC's __transaction_atomic, compiled with -fgnu-tm and
 * linked with libstillpoint-itm].
 *
 *     order-book --pool book.pool --orders 100000 --acknowledge orders.txt     kill it, start it again
 *
 * Plain C: the compiler instruments what stands inside __transaction_atomic, and the functions that are declared transaction_safe. When the
 * block has ended, all of it is durable. An order is matched with those of the other side, and what is left of it joins the book. Cash
 * and shares move between traders. check_book() adds everything up at every start. Without a pool the program runs in ordinary memory. */

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stillpoint/itm.h"
#include "stillpoint/stillpoint.h"

#define SAFE __attribute__((transaction_safe))

enum { traders = 40, prices = 64, threads_max = 16, cash_at_start = 1000000, shares_at_start = 10000, exit_broken = 3, exit_usage = 64 };
enum side { buys, sells, sides };

typedef struct order {
    struct order* next; /* the later one of the same price */
    long trader;
    long shares;
    long price;
} order;

/* The object after the root "exchange". */
typedef struct exchange {
    struct {
        long cash, shares;
    } traders[traders];
    struct {
        order *first, *last;
    } book[sides][prices];
    struct {
        _Alignas(64) long orders;
    } desks[threads_max]; /* one for each thread */
    long blocks_before;   /* live blocks of the heap before the first order, and 1 */
} exchange;

/* Moves shares and cash from one trader to another. */
static SAFE void trade(exchange* in, long buyer, long seller, long shares, long price)
{
    in->traders[buyer].cash -= shares * price;
    in->traders[buyer].shares += shares;
    in->traders[seller].cash += shares * price;
    in->traders[seller].shares -= shares;
}

/* Matches the order with the oldest ones of one price of the other side. Returns what is left of it. */
static SAFE long match(exchange* in, const order* given, enum side side, long price)
{
    const enum side other = side == buys ? sells : buys;
    long left = given->shares;
    while (left > 0 && in->book[other][price].first != NULL) {
        order* found = in->book[other][price].first;
        const long shares = found->shares < left ? found->shares : left;
        trade(in, side == buys ? given->trader : found->trader, side == buys ? found->trader : given->trader, shares, price);
        left -= shares;
        found->shares -= shares;
        if (found->shares == 0) {
            in->book[other][price].first = found->next;
            if (found->next == NULL) {
                in->book[other][price].last = NULL;
            }
            sp_tm_free(found);
        }
    }
    return left;
}

static SAFE void submit(exchange* in, const order* given, enum side side)
{
    order rest = *given;
    for (long i = 0; i < prices && rest.shares > 0; ++i) {
        const long price = side == buys ? i : prices - 1 - i; /* the best first */
        if (side == buys ? price <= given->price : price >= given->price) {
            rest.shares = match(in, &rest, side, price);
        }
    }
    if (rest.shares > 0) {
        order* made = sp_tm_malloc(sizeof *made);
        *made = rest;
        made->next = NULL;
        if (in->book[side][given->price].last != NULL) {
            in->book[side][given->price].last->next = made;
        } else {
            in->book[side][given->price].first = made;
        }
        in->book[side][given->price].last = made;
    }
}

typedef struct desk {
    exchange* in;
    long number;
    long orders;     /* to submit in all, earlier runs included */
    int acknowledge; /* a file, or -1 */
    unsigned random;
} desk;

static void* run_desk(void* argument)
{
    desk* self = argument;
    exchange* in = self->in;
    long done = in->desks[self->number].orders; /* No other thread writes it. */
    while (done < self->orders) {
        const order given = {NULL, rand_r(&self->random) % traders, 1 + rand_r(&self->random) % 100,
                             prices / 4 + rand_r(&self->random) % (prices / 2)};
        const enum side side = rand_r(&self->random) % 2 == 0 ? buys : sells;
        __transaction_atomic
        {
            submit(in, &given, side);
            in->desks[self->number].orders += 1;
        }
        ++done; /* Durable from here on. */
        char line[64];
        const int length = snprintf(line, sizeof line, "%ld %ld\n", self->number, done);
        if (self->acknowledge >= 0 && write(self->acknowledge, line, (size_t)length) != length) {
            perror("order-book: the file of acknowledgements");
            exit(1);
        }
    }
    return NULL;
}

/* Makes the exchange, if it is new. */
static void found_exchange(exchange* in)
{
    sp_heap_statistics heap = {0};
    sp_heap_stats(&heap);
    __transaction_atomic
    {
        if (in->blocks_before == 0) {
            for (long i = 0; i < traders; ++i) {
                in->traders[i].cash = cash_at_start;
                in->traders[i].shares = shares_at_start;
            }
            in->blocks_before = (long)heap.live_blocks + 1;
        }
    }
}

/* No thread may be running. False: a transaction was half done. */
static bool check_book(const exchange* in)
{
    long cash = 0;
    long shares = 0;
    for (long i = 0; i < traders; ++i) {
        cash += in->traders[i].cash;
        shares += in->traders[i].shares;
    }
    long blocks = in->blocks_before - 1;
    bool sound = cash == (long)traders * cash_at_start && shares == (long)traders * shares_at_start;
    long highest_buy = -1;
    long lowest_sell = prices;
    for (long price = 0; price < prices; ++price) {
        for (int side = 0; side < sides; ++side) {
            const order* last = NULL;
            for (const order* one = in->book[side][price].first; one != NULL; one = one->next) {
                sound = sound && one->price == price && one->shares > 0;
                last = one;
                ++blocks;
            }
            sound = sound && last == in->book[side][price].last;
        }
        highest_buy = in->book[buys][price].first != NULL ? price : highest_buy;
        lowest_sell = in->book[sells][price].first != NULL && price < lowest_sell ? price : lowest_sell;
    }
    sp_heap_statistics heap = {0};
    const bool has_heap = sp_heap_stats(&heap) == SP_OK; /* Ordinary memory has no figures. */
    return sound && highest_buy < lowest_sell && (!has_heap || (long)heap.live_blocks == blocks);
}

/* False: the file has an order that is not in the pool. */
static bool has_acknowledged(const exchange* in, const char* path)
{
    FILE* file = fopen(path, "r");
    char line[64];
    bool has_all = true;
    while (file != NULL && fgets(line, sizeof line, file) != NULL && strchr(line, '\n') != NULL) {
        char* rest = line;
        const long number = strtol(line, &rest, 10);
        const long orders = strtol(rest, NULL, 10);
        if (number < threads_max && in->desks[number].orders < orders) {
            printf("order-book: LOST: desk %ld has acknowledged order %ld\n", number, orders);
            has_all = false;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return has_all;
}

static int run(exchange* in, long threads, long orders, const char* acknowledge_path)
{
    found_exchange(in);
    if (!check_book(in)) {
        printf("order-book: BROKEN at the start\n");
        return exit_broken;
    }
    int acknowledge = -1;
    if (acknowledge_path != NULL) {
        if (!has_acknowledged(in, acknowledge_path)) {
            return exit_broken;
        }
        acknowledge = open(acknowledge_path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    }
    desk desks[threads_max];
    pthread_t running[threads_max];
    for (long i = 0; i < threads; ++i) {
        desks[i] = (desk){in, i, orders / threads, acknowledge, (unsigned)(i + in->desks[i].orders * threads_max)};
        if (pthread_create(&running[i], NULL, run_desk, &desks[i]) != 0) {
            perror("order-book: a thread");
            return 1;
        }
    }
    long made = 0;
    for (long i = 0; i < threads; ++i) {
        pthread_join(running[i], NULL);
        made += in->desks[i].orders;
    }
    if (!check_book(in)) {
        printf("order-book: BROKEN at the end\n");
        return exit_broken;
    }
    if (sp_tm_status() != SP_OK) {
        printf("order-book: not durable any more\n");
        return 1;
    }
    printf("order-book: done, %ld orders\n", made);
    return 0;
}

int main(int count, char** words)
{
    const char* pool = NULL;
    const char* acknowledge = NULL;
    long orders = 10000;
    long threads = 4;
    for (int i = 1; i < count; i += 2) {
        const char* value = i + 1 < count ? words[i + 1] : "";
        if (strcmp(words[i], "--pool") == 0) {
            pool = value;
        } else if (strcmp(words[i], "--acknowledge") == 0) {
            acknowledge = value;
        } else if (strcmp(words[i], "--orders") == 0) {
            orders = strtol(value, NULL, 10);
        } else if (strcmp(words[i], "--threads") == 0) {
            threads = strtol(value, NULL, 10);
        } else {
            threads = 0;
        }
        if (threads < 1 || threads > threads_max) {
            fprintf(stderr, "usage: order-book [--pool FILE] [--orders N] [--threads N] [--acknowledge FILE]\n");
            return exit_usage;
        }
    }
    if (pool != NULL && sp_open(pool, "engine=spht") != SP_OK) {
        fprintf(stderr, "order-book: %s\n", sp_last_error());
        return 1;
    }
    exchange* in = sp_root("exchange", sizeof *in);
    if (in == NULL) {
        fprintf(stderr, "order-book: %s\n", sp_last_error());
        return 1;
    }
    return run(in, threads, orders, acknowledge);
}
