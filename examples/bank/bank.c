/* bank: threads move money between accounts, each transfer under two locks. Survives kill -9.
 *
 *   bank --transfers 1000000                                    ordinary memory
 *   stillpoint run --pool bank.pool -- bank --transfers 1000000     durable: kill it, start it again
 *
 * Durable are the accounts (each with its mutex, its balance and a short statement, a list of blocks that are
 * allocated and freed by every transfer) and one operation counter for each thread. A transfer is one
 * FASE: from the first lock to the last unlock. So after a crash at any instruction, whatever the threads were doing:
 *   - the sum of all balances is what it was at the beginning;
 *   - the transfers that the accounts have seen are twice those that the threads have counted;
 *   - the newest line of each statement shows the account's balance;
 *   - the heap holds the statements' blocks and no other: nothing leaked, nothing is used twice.
 * audit() checks all four at every start and at the end.
 *
 * With --acknowledge FILE the program also does what a server does that must not lose what it has confirmed: it reads
 * the threads' counters after their FASEs have ended, waits until that epoch is durable, and only then writes them
 * down in an ordinary file. A restart compares: no counter may be lower than the file says. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>
#include <fcntl.h>
#include <time.h>

#include "stillpoint/stillpoint.h"

enum {
    accounts_max = 1 << 20,
    threads_max = 64,
    statement_lines = 4, /* of each account; an older line is freed */
    initial_balance = 1000,
    exit_broken = 1,       /* an invariant does not hold */
    exit_lost_ack = 3      /* something acknowledged is missing */
};

typedef struct statement_line {
    struct statement_line* older;
    int64_t amount;
    int64_t balance_after;
} statement_line;

typedef struct account {
    pthread_mutex_t lock; /* guards the rest of the account */
    int64_t balance;
    uint64_t transfers;
    statement_line* newest;
    uint32_t lines;
} account;

/* One cache line each: threads do not share. Written inside the owner's FASE. */
typedef struct thread_counter {
    _Alignas(64) uint64_t transfers;
} thread_counter;

/* The object after the root "bank". `account_count` is written last, in the FASE that makes the rest. */
typedef struct bank {
    thread_counter counters[threads_max];
    uint64_t account_count;
    uint64_t thread_count;
    uint64_t blocks_at_start; /* live blocks of the heap before the first transfer */
    account* accounts;
} bank;

typedef struct arguments {
    uint64_t accounts;
    uint64_t threads;
    uint64_t transfers;
    uint64_t acknowledge_ms;
    const char* acknowledge_path;
} arguments;

typedef struct teller {
    bank* bank;
    uint64_t number;
    uint64_t target;            /* transfers of this thread, earlier runs included */
    _Atomic uint64_t completed; /* transfers whose FASE has ended; volatile */
} teller;

static const char help_text[] = "Usage: bank [options]\n"
                                "Moves money between accounts until every thread has made its share of the transfers.\n"
                                "  --accounts N           accounts of a new bank, 2 to 1048576 (default 1000)\n"
                                "  --threads N            threads of a new bank, 1 to 64 (default 4)\n"
                                "  --transfers N          transfers to make in all, earlier runs included (default 1000000)\n"
                                "  --acknowledge FILE     append each durable epoch and the transfers it is known to hold\n"
                                "  --acknowledge-ms N     pause between two acknowledgements (default 5)\n"
                                "Example:\n"
                                "  stillpoint run --pool bank.pool -- bank --transfers 5000000 --acknowledge bank.ack\n"
                                "Exit codes: 0 done; 1 an invariant is broken; 3 an acknowledged transfer is missing; 64 wrong arguments;\n"
                                "65 the pool holds another bank; 71 no memory, thread or file.\n";

static uint64_t next_random(uint64_t* state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* Adds a line to the statement and frees the oldest. The account's lock is held. */
static int write_statement(account* of, int64_t amount)
{
    statement_line* line = sp_malloc(sizeof *line);
    if (line == NULL) {
        return -1;
    }
    *line = (statement_line){.older = of->newest, .amount = amount, .balance_after = of->balance};
    of->newest = line;
    if (of->lines < statement_lines) {
        ++of->lines;
        return 0;
    }
    while (line->older->older != NULL) {
        line = line->older;
    }
    sp_free(line->older);
    line->older = NULL;
    return 0;
}

/* One FASE. Locks are taken in the order of addresses, so that two transfers cannot wait for each other. */
static int transfer(bank* in, uint64_t teller_number, uint64_t from_index, uint64_t to_index, int64_t amount)
{
    account* from = &in->accounts[from_index];
    account* to = &in->accounts[to_index];
    account* first = from < to ? from : to;
    account* second = from < to ? to : from;
    pthread_mutex_lock(&first->lock);
    pthread_mutex_lock(&second->lock);
    from->balance -= amount;
    to->balance += amount;
    ++from->transfers;
    ++to->transfers;
    int failed = write_statement(from, -amount);
    failed |= write_statement(to, amount);
    ++in->counters[teller_number].transfers;
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);
    return failed;
}

static void* run_teller(void* argument)
{
    teller* self = argument;
    bank* in = self->bank;
    uint64_t done = in->counters[self->number].transfers;
    uint64_t random = (self->number + 1) * UINT64_C(0x9e3779b97f4a7c15) + done;
    while (done < self->target) {
        const uint64_t from = next_random(&random) % in->account_count;
        const uint64_t step = 1 + next_random(&random) % (in->account_count - 1);
        const int64_t amount = (int64_t)(next_random(&random) % 100);
        if (transfer(in, self->number, from, (from + step) % in->account_count, amount) != 0) {
            fprintf(stderr, "bank: no memory for a statement: %s\n", sp_last_error());
            _exit(EX_OSERR);
        }
        ++done;
        atomic_store_explicit(&self->completed, done, memory_order_release);
    }
    return NULL;
}

/* Makes the accounts, in one FASE: a crash inside leaves none of it. The lock need not be durable. */
static int found_bank(bank* new_bank, const arguments* given)
{
    static pthread_mutex_t founding = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&founding);
    account* accounts = sp_calloc(given->accounts, sizeof *accounts);
    if (accounts != NULL) {
        for (uint64_t i = 0; i < given->accounts; ++i) {
            pthread_mutex_init(&accounts[i].lock, NULL);
            accounts[i].balance = initial_balance;
        }
        sp_heap_statistics heap = {0};
        new_bank->blocks_at_start = sp_heap_stats(&heap) == SP_OK ? heap.live_blocks : 0;
        new_bank->accounts = accounts;
        new_bank->thread_count = given->threads;
        new_bank->account_count = given->accounts;
    }
    pthread_mutex_unlock(&founding);
    return accounts != NULL ? 0 : -1;
}

static bool statement_holds(const account* of)
{
    uint32_t lines = 0;
    const statement_line* line = of->newest;
    int64_t balance = of->balance;
    for (; line != NULL && lines <= statement_lines; line = line->older, ++lines) {
        if (line->balance_after != balance) {
            return false;
        }
        balance -= line->amount;
    }
    return line == NULL && lines == of->lines;
}

static uint64_t transfers_made(const bank* of)
{
    uint64_t made = 0;
    for (uint64_t i = 0; i < of->thread_count; ++i) {
        made += of->counters[i].transfers;
    }
    return made;
}

/* No other thread may be running. Prints what it found; false: an invariant is broken. */
static bool audit(const bank* of, const char* when)
{
    int64_t sum = 0;
    uint64_t seen = 0;
    uint64_t lines = 0;
    uint64_t bad_statements = 0;
    for (uint64_t i = 0; i < of->account_count; ++i) {
        const account* one = &of->accounts[i];
        sum += one->balance;
        seen += one->transfers;
        lines += one->lines;
        bad_statements += statement_holds(one) ? 0u : 1u;
    }
    const int64_t expected = (int64_t)of->account_count * initial_balance;
    const uint64_t made = transfers_made(of);
    sp_heap_statistics heap = {0};
    const bool has_heap = sp_heap_stats(&heap) == SP_OK && of->blocks_at_start != 0;
    const bool leaked = has_heap && heap.live_blocks != of->blocks_at_start + lines;
    const bool holds = sum == expected && seen == 2 * made && bad_statements == 0 && !leaked;
    printf("bank: %s: sum %" PRId64 " of %" PRId64 ", %" PRIu64 " transfers, seen by accounts %" PRIu64 ", %" PRIu64 " bad statements, ",
           when, sum, expected, made, seen, bad_statements);
    if (has_heap) {
        printf("heap %" PRIu64 " of %" PRIu64 " blocks: %s\n", heap.live_blocks, of->blocks_at_start + lines, holds ? "holds" : "BROKEN");
    } else {
        printf("heap not counted: %s\n", holds ? "holds" : "BROKEN");
    }
    fflush(stdout);
    return holds;
}

/* Reads the last whole line "epoch transfers" of the file, if there is one. */
static void last_acknowledged(const char* path, uint64_t* epoch, uint64_t* transfers)
{
    *epoch = 0;
    *transfers = 0;
    FILE* file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    char line[128];
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t seen_epoch = 0;
        uint64_t seen_transfers = 0;
        if (strchr(line, '\n') != NULL && sscanf(line, "%" SCNu64 " %" SCNu64, &seen_epoch, &seen_transfers) == 2) {
            *epoch = seen_epoch;
            *transfers = seen_transfers;
        }
    }
    fclose(file);
}

/* The order is the point: FASEs end; then their number is read; then the epoch; then the wait; then the reply. */
static int acknowledge_once(int file, teller* tellers, uint64_t count)
{
    uint64_t completed = 0;
    for (uint64_t i = 0; i < count; ++i) {
        completed += atomic_load_explicit(&tellers[i].completed, memory_order_acquire);
    }
    const uint64_t epoch = sp_epoch();
    const int waited = sp_wait_durable(epoch, -1);
    if (waited != SP_OK) {
        fprintf(stderr, "bank: not acknowledged: %s: %s\n", sp_error_string(waited), sp_last_error());
        return -1;
    }
    char line[128];
    const int length = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 "\n", epoch, completed);
    if (write(file, line, (size_t)length) != length) {
        fprintf(stderr, "bank: cannot write an acknowledgement: %s\n", strerror(errno));
        return -1;
    }
    return 0;
}

typedef struct acknowledger {
    int file;
    teller* tellers;
    uint64_t teller_count;
    uint64_t pause_ms;
    atomic_bool end;
    bool failed;
} acknowledger;

static void* run_acknowledger(void* argument)
{
    acknowledger* self = argument;
    const struct timespec pause = {.tv_sec = (time_t)(self->pause_ms / 1000), .tv_nsec = (long)(self->pause_ms % 1000) * 1000000};
    while (!atomic_load(&self->end) && !self->failed) {
        self->failed = acknowledge_once(self->file, self->tellers, self->teller_count) != 0;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Starts the tellers, and the acknowledger where one is wanted, and waits for them. */
static int run_threads(bank* in, const arguments* given)
{
    static teller tellers[threads_max];
    pthread_t threads[threads_max];
    acknowledger ack = {.file = -1, .tellers = tellers, .teller_count = in->thread_count, .pause_ms = given->acknowledge_ms};
    pthread_t ack_thread;
    for (uint64_t i = 0; i < in->thread_count; ++i) {
        tellers[i].bank = in;
        tellers[i].number = i;
        tellers[i].target = given->transfers / in->thread_count + (i < given->transfers % in->thread_count ? 1 : 0);
        atomic_init(&tellers[i].completed, in->counters[i].transfers);
    }
    const bool acknowledges = given->acknowledge_path != NULL && sp_start_kind() != SP_START_VOLATILE;
    if (acknowledges) {
        ack.file = open(given->acknowledge_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (ack.file < 0 || pthread_create(&ack_thread, NULL, run_acknowledger, &ack) != 0) {
            fprintf(stderr, "bank: %s: %s\n", given->acknowledge_path, strerror(errno));
            return EX_OSERR;
        }
    }
    for (uint64_t i = 0; i < in->thread_count; ++i) {
        const int failed = pthread_create(&threads[i], NULL, run_teller, &tellers[i]);
        if (failed != 0) {
            fprintf(stderr, "bank: no thread: %s\n", strerror(failed));
            exit(EX_OSERR);
        }
    }
    for (uint64_t i = 0; i < in->thread_count; ++i) {
        pthread_join(threads[i], NULL);
    }
    if (acknowledges) {
        atomic_store(&ack.end, true);
        pthread_join(ack_thread, NULL);
        close(ack.file);
    }
    return ack.failed ? EX_OSERR : EXIT_SUCCESS;
}

static bool parse_number(const char* text, uint64_t minimum, uint64_t maximum, uint64_t* out)
{
    char* end = NULL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < minimum || value > maximum) {
        fprintf(stderr, "bank: \"%s\" is not a number from %" PRIu64 " to %" PRIu64 "\n", text, minimum, maximum);
        return false;
    }
    *out = value;
    return true;
}

static bool parse(int count, char** words, arguments* out)
{
    static const struct option options[] = {{"accounts", required_argument, NULL, 'a'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"transfers", required_argument, NULL, 'n'},
                                            {"acknowledge", required_argument, NULL, 'k'},
                                            {"acknowledge-ms", required_argument, NULL, 'm'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    bool valid = true;
    for (int found; valid && (found = getopt_long(count, words, "", options, NULL)) != -1;) {
        switch (found) {
        case 'a': valid = parse_number(optarg, 2, accounts_max, &out->accounts); break;
        case 't': valid = parse_number(optarg, 1, threads_max, &out->threads); break;
        case 'n': valid = parse_number(optarg, 0, UINT64_C(1) << 40, &out->transfers); break;
        case 'm': valid = parse_number(optarg, 0, 60000, &out->acknowledge_ms); break;
        case 'k': out->acknowledge_path = optarg; break;
        case 'h': fputs(help_text, stdout); exit(EXIT_SUCCESS);
        default: valid = false;
        }
    }
    return valid && optind == count;
}

/* Opens the bank and checks it against the file of acknowledgements. */
static int open_bank(const arguments* given, bank** out)
{
    bank* found = sp_root("bank", sizeof(bank));
    if (found == NULL) {
        fprintf(stderr, "bank: no durable root: %s %s\n", strerror(errno), sp_last_error());
        return EX_DATAERR;
    }
    if (found->account_count == 0 && found_bank(found, given) != 0) {
        fprintf(stderr, "bank: no memory for the accounts: %s\n", sp_last_error());
        return EX_OSERR;
    }
    *out = found;
    static const char* const kinds[] = {"volatile", "fresh pool", "pool closed normally", "resumed after a crash"};
    uint64_t epoch = 0;
    uint64_t acknowledged = 0;
    if (given->acknowledge_path != NULL) {
        last_acknowledged(given->acknowledge_path, &epoch, &acknowledged);
    }
    const uint64_t made = transfers_made(found);
    printf("bank: start: %s; %" PRIu64 " transfers done, %" PRIu64 " acknowledged at epoch %" PRIu64 "\n", kinds[sp_start_kind()], made,
           acknowledged, epoch);
    fflush(stdout);
    if (!audit(found, "at the start")) {
        return exit_broken;
    }
    if (acknowledged > made) {
        fprintf(stderr, "bank: LOST: %" PRIu64 " transfers were acknowledged at epoch %" PRIu64 ", %" PRIu64 " are here\n", acknowledged,
                epoch, made);
        return exit_lost_ack;
    }
    return EXIT_SUCCESS;
}

int main(int count, char** words)
{
    arguments given = {.accounts = 1000, .threads = 4, .transfers = 1000000, .acknowledge_ms = 5};
    if (!parse(count, words, &given)) {
        fputs(help_text, stderr);
        return EX_USAGE;
    }
    bank* opened = NULL;
    int code = open_bank(&given, &opened);
    if (code == EXIT_SUCCESS) {
        code = run_threads(opened, &given);
    }
    if (code == EXIT_SUCCESS && !audit(opened, "at the end")) {
        code = exit_broken;
    }
    if (code == EXIT_SUCCESS) {
        printf("bank: done: %" PRIu64 " transfers\n", transfers_made(opened));
    }
    return code;
}
