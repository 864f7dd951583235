/* wide_ledger FILE MIB: a service with much memory, for measurements of fail-over. Each operation reads a random page of its memory,
 * checks it, and counts itself there and in the root; what is durable goes to FILE ("epoch operations"). Says on which nanosecond of
 * CLOCK_MONOTONIC it did its first operation and its thousandth, and heard of the first that is durable. Ends with 1 where a page is not
 * what it was. */

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

enum { page_words = 512, pages_of_block = 256, operation_ns = 200000 };

typedef struct block {
    uint64_t words[pages_of_block][page_words];
} block;

typedef struct ledger {
    pthread_mutex_t lock;
    uint64_t block_count;
    uint64_t operations;
    block* blocks[];
} ledger;

static _Atomic uint64_t completed;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Never changed but for the first word of a page, which counts. */
static uint64_t pattern(uint64_t block_number, uint64_t page, uint64_t word)
{
    uint64_t mixed = (block_number << 32) + (page << 16) + word + 1;
    mixed *= UINT64_C(0x9E3779B97F4A7C15);
    return mixed ^ (mixed >> 29);
}

static int fill(ledger* found, uint64_t count)
{
    for (uint64_t i = found->block_count; i < count; ++i) {
        block* const made = sp_malloc(sizeof(block));
        if (made == NULL) {
            fprintf(stderr, "wide_ledger: %s\n", sp_last_error());
            return EX_OSERR;
        }
        for (uint64_t page = 0; page < pages_of_block; ++page) {
            made->words[page][0] = 0;
            for (uint64_t word = 1; word < page_words; ++word) {
                made->words[page][word] = pattern(i, page, word);
            }
        }
        pthread_mutex_lock(&found->lock);
        found->blocks[i] = made;
        found->block_count = i + 1;
        pthread_mutex_unlock(&found->lock);
    }
    return sp_checkpoint() == SP_OK ? EX_OK : EX_IOERR;
}

static int operate(ledger* found, uint64_t* seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    const uint64_t chosen = (*seed >> 33) % (found->block_count * pages_of_block);
    const uint64_t block_number = chosen / pages_of_block;
    const uint64_t page = chosen % pages_of_block;
    uint64_t* const words = found->blocks[block_number]->words[page];
    for (uint64_t word = 1; word < page_words; ++word) {
        if (words[word] != pattern(block_number, page, word)) {
            fprintf(stderr, "wide_ledger: BROKEN: block %" PRIu64 ", page %" PRIu64 "\n", block_number, page);
            return 1;
        }
    }
    pthread_mutex_lock(&found->lock);
    ++words[0];
    ++found->operations;
    atomic_store_explicit(&completed, found->operations, memory_order_release);
    pthread_mutex_unlock(&found->lock);
    return 0;
}

static void* acknowledge(void* path)
{
    FILE* const file = fopen(path, "a");
    for (int is_first = 1; file != NULL;) {
        const uint64_t operations = atomic_load_explicit(&completed, memory_order_acquire);
        const uint64_t epoch = sp_epoch();
        if (sp_wait_durable(epoch, -1) != SP_OK) {
            break;
        }
        fprintf(file, "%" PRIu64 " %" PRIu64 "\n", epoch, operations);
        fflush(file);
        if (is_first && operations != 0) {
            printf("wide_ledger: first acknowledgement at %" PRIu64 "\n", now_ns());
            fflush(stdout);
            is_first = 0;
        }
    }
    return NULL;
}

int main(int count, char** words)
{
    const uint64_t blocks = count == 3 ? strtoull(words[2], NULL, 10) : 0;
    if (blocks == 0) {
        fprintf(stderr, "wide_ledger: usage: wide_ledger FILE MIB\n");
        return EX_USAGE;
    }
    const uint64_t begun_ns = now_ns();
    ledger* const found = sp_root("wide_ledger", sizeof(ledger) + blocks * sizeof(block*));
    if (found == NULL) {
        fprintf(stderr, "wide_ledger: no durable root: %s\n", sp_last_error());
        return EX_DATAERR;
    }
    printf("wide_ledger: begun at %" PRIu64 ", open at %" PRIu64 ", found %" PRIu64 " operations\n", begun_ns, now_ns(), found->operations);
    fflush(stdout);
    if (found->block_count < blocks) {
        const int filled = fill(found, blocks);
        if (filled != EX_OK) {
            return filled;
        }
    }
    uint64_t seed = now_ns();
    pthread_t acknowledger;
    for (uint64_t i = 0;; ++i) {
        if (operate(found, &seed) != 0) {
            return 1;
        }
        if (i == 0) {
            printf("wide_ledger: first operation at %" PRIu64 "\n", now_ns());
            fflush(stdout);
            pthread_create(&acknowledger, NULL, &acknowledge, words[1]);
        }
        if (i + 1 == 1000) {
            printf("wide_ledger: thousandth operation at %" PRIu64 "\n", now_ns());
            fflush(stdout);
        }
        nanosleep(&(struct timespec){0, operation_ns}, NULL);
    }
}
