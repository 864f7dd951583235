/* Seats of an airline that are never sold twice, also over kill -9: transactions in C [stillpoint/spht.h].
 *
 *     seats --pool seats.pool --bookings 100000 --acknowledge bookings.txt     kill it, start it again
 *
 * A passenger takes a seat of a flight, or changes to a free one, or gives the seat back. The seat knows its passenger and the
 * passenger the seat; both change in one transaction. check_seats() compares them at every start. Each thread counts its bookings in the
 * same transaction; with --acknowledge it writes the number down in an ordinary file after the transaction has returned, and a restart
 * compares. */

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stillpoint/spht.h"
#include "stillpoint/stillpoint.h"

enum { flights = 20, seats_of_flight = 100, passengers = 3000, threads_max = 16, exit_broken = 3, exit_usage = 64 };

/* The object after the root "airline". Numbers count from 1; 0 stands for none. */
typedef struct airline {
    uint64_t passenger_of[flights * seats_of_flight];
    uint64_t seat_of[passengers];
    uint64_t free_seats;
    uint64_t is_open;
    struct {
        _Alignas(64) uint64_t bookings;
    } agents[threads_max];
} airline;

typedef struct agent {
    airline* all;
    uint64_t number;
    uint64_t bookings; /* to make in all, earlier runs included */
    int acknowledge;   /* a file, or -1 */
    uint64_t random;
} agent;

/* The argument of a transaction, whose body may run several times: it changes nothing here. */
typedef struct booking {
    airline* all;
    uint64_t agent, passenger, seat;
} booking;

/* Returns from the function where a call meets a conflict: sp_spht_run runs it again. */
#define TRY(call)                                                                                                                          \
    do {                                                                                                                                   \
        const int result_ = (call);                                                                                                        \
        if (result_ != SP_OK) {                                                                                                            \
            return result_;                                                                                                                \
        }                                                                                                                                  \
    } while (0)

static int write_word(sp_spht_transaction* transaction, uint64_t* place, uint64_t value)
{
    return sp_spht_write_word(transaction, place, value, UINT64_MAX);
}

static int add_word(sp_spht_transaction* transaction, uint64_t* place, uint64_t amount)
{
    uint64_t value = 0;
    TRY(sp_spht_read_word(transaction, place, &value));
    return write_word(transaction, place, value + amount);
}

static int open_airline(sp_spht_transaction* transaction, void* argument)
{
    airline* all = argument;
    TRY(write_word(transaction, &all->free_seats, flights * seats_of_flight));
    return write_word(transaction, &all->is_open, 1);
}

/* One transaction. The seat may be another passenger's: then the one that the passenger has is given back. */
static int book(sp_spht_transaction* transaction, void* argument)
{
    const booking* wanted = argument;
    airline* all = wanted->all;
    uint64_t old_seat = 0;
    uint64_t holder = 0;
    TRY(sp_spht_read_word(transaction, &all->seat_of[wanted->passenger - 1], &old_seat));
    TRY(sp_spht_read_word(transaction, &all->passenger_of[wanted->seat - 1], &holder));
    const uint64_t new_seat = holder == 0 ? wanted->seat : 0;
    if (old_seat != 0) {
        TRY(write_word(transaction, &all->passenger_of[old_seat - 1], 0));
        TRY(add_word(transaction, &all->free_seats, 1));
    }
    if (new_seat != 0) {
        TRY(write_word(transaction, &all->passenger_of[new_seat - 1], wanted->passenger));
        TRY(add_word(transaction, &all->free_seats, UINT64_MAX));
    }
    TRY(write_word(transaction, &all->seat_of[wanted->passenger - 1], new_seat));
    return add_word(transaction, &all->agents[wanted->agent].bookings, 1);
}

static uint64_t next_random(uint64_t* state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717) >> 20;
}

static void* run_agent(void* argument)
{
    agent* self = argument;
    uint64_t done = self->all->agents[self->number].bookings; /* No other thread writes it. */
    while (done < self->bookings) {
        booking one = {self->all, self->number, 0, 0};
        one.passenger = 1 + next_random(&self->random) % passengers;
        one.seat = 1 + next_random(&self->random) % (flights * seats_of_flight);
        if (sp_spht_run(book, &one, 0) != SP_OK) {
            fprintf(stderr, "seats: %s\n", sp_last_error());
            exit(1);
        }
        ++done; /* Durable from here on. */
        char line[64];
        const int length = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 "\n", self->number, done);
        if (self->acknowledge >= 0 && write(self->acknowledge, line, (size_t)length) != length) {
            perror("seats: the file of acknowledgements");
            exit(1);
        }
    }
    return NULL;
}

/* No thread may be running. False: a transaction was half done. */
static bool check_seats(const airline* all)
{
    uint64_t free_seats = 0;
    uint64_t taken = 0;
    for (uint64_t seat = 1; seat <= flights * seats_of_flight; ++seat) {
        const uint64_t passenger = all->passenger_of[seat - 1];
        free_seats += passenger == 0 ? 1U : 0U;
        if (passenger != 0 && all->seat_of[passenger - 1] != seat) {
            return false;
        }
    }
    for (uint64_t passenger = 0; passenger < passengers; ++passenger) {
        taken += all->seat_of[passenger] != 0 ? 1U : 0U;
    }
    return free_seats == all->free_seats && taken + free_seats == flights * seats_of_flight;
}

/* False: the file has a booking that is not in the pool. */
static bool has_acknowledged(const airline* all, const char* path)
{
    FILE* file = fopen(path, "r");
    char line[64];
    bool has_all = true;
    while (file != NULL && fgets(line, sizeof line, file) != NULL && strchr(line, '\n') != NULL) {
        char* rest = line;
        const uint64_t number = strtoull(line, &rest, 10);
        const uint64_t bookings = strtoull(rest, NULL, 10);
        if (number < threads_max && all->agents[number].bookings < bookings) {
            printf("seats: LOST: agent %" PRIu64 " has acknowledged booking %" PRIu64 "\n", number, bookings);
            has_all = false;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return has_all;
}

static int run(airline* all, uint64_t threads, uint64_t bookings, const char* acknowledge_path)
{
    if (all->is_open == 0 && sp_spht_run(open_airline, all, 0) != SP_OK) {
        fprintf(stderr, "seats: %s\n", sp_last_error());
        return 1;
    }
    if (!check_seats(all)) {
        printf("seats: BROKEN at the start\n");
        return exit_broken;
    }
    int acknowledge = -1;
    if (acknowledge_path != NULL) {
        if (!has_acknowledged(all, acknowledge_path)) {
            return exit_broken;
        }
        acknowledge = open(acknowledge_path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    }
    agent agents[threads_max];
    pthread_t running[threads_max];
    for (uint64_t i = 0; i < threads; ++i) {
        agents[i] = (agent){all, i, bookings / threads, acknowledge, (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + all->agents[i].bookings};
        if (pthread_create(&running[i], NULL, run_agent, &agents[i]) != 0) {
            perror("seats: a thread");
            return 1;
        }
    }
    uint64_t made = 0;
    for (uint64_t i = 0; i < threads; ++i) {
        pthread_join(running[i], NULL);
        made += all->agents[i].bookings;
    }
    if (!check_seats(all)) {
        printf("seats: BROKEN at the end\n");
        return exit_broken;
    }
    printf("seats: done, %" PRIu64 " bookings\n", made);
    return 0;
}

int main(int count, char** words)
{
    const char* pool = NULL;
    const char* acknowledge = NULL;
    uint64_t bookings = 10000;
    uint64_t threads = 4;
    for (int i = 1; i < count; i += 2) {
        const char* value = i + 1 < count ? words[i + 1] : "";
        if (strcmp(words[i], "--pool") == 0) {
            pool = value;
        } else if (strcmp(words[i], "--acknowledge") == 0) {
            acknowledge = value;
        } else if (strcmp(words[i], "--bookings") == 0) {
            bookings = strtoull(value, NULL, 10);
        } else if (strcmp(words[i], "--threads") == 0) {
            threads = strtoull(value, NULL, 10);
        } else {
            threads = 0;
        }
        if (threads == 0 || threads > threads_max) {
            fprintf(stderr, "usage: seats [--pool FILE] [--bookings N] [--threads N] [--acknowledge FILE]\n");
            return exit_usage;
        }
    }
    if (pool != NULL && sp_open(pool, "engine=spht") != SP_OK) {
        fprintf(stderr, "seats: %s\n", sp_last_error());
        return 1;
    }
    airline* all = sp_root("airline", sizeof *all);
    if (all == NULL) {
        fprintf(stderr, "seats: %s\n", sp_last_error());
        return 1;
    }
    return run(all, threads, bookings, acknowledge);
}
