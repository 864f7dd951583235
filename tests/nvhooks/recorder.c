/* Runs generated programs and holds the hooks that they call against what they did to durable memory.
 *
 * A program runs several times, on memory with other random contents each time, and after each call of boundary() too; its
 * control flow and its addresses do not depend on them. Between two calls then:
 *   - the bytes that changed in some run are the bytes written;
 *   - the ranges of the hooks before a write are those bytes, and so are the ranges of the hooks after it;
 *   - the contents at the hooks before a write, put back in reverse order, give the memory before;
 *   - the contents at the hooks after a write, applied in order to the memory before, give the memory now;
 *   - or, with cards, the cards marked are the cards of those bytes.
 * Reads are checked by a second run, in which memory holds rubbish until a hook before a read or a write brings in what should be
 * there: it must end with the memory of the first.
 *
 * Options: --pre --post --cards=SHIFT --untracked-blocks --relative --reads. Exit code 1, and a line for what is wrong. */
#define _GNU_SOURCE
#include "recorder.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nvhooks/abi/nvhooks_abi.h"

enum { MEMORY_BYTES = 1 << 15, RUNS = 6, EPOCHS_MAX = 128, LOG_BYTES = 1 << 26 };

#define WINDOW ((uintptr_t)NVHOOKS_WINDOW_INDEX << NVHOOKS_WINDOW_SHIFT)
/* As in the layers that fuzz.py writes. */
#define CARD_TABLE ((uintptr_t)0x470000000000)
#define COARSE_TABLE ((uintptr_t)0x471000000000)
#define COARSE_SHIFT 9
#define TAKEN_CARD 2 /* no card has bit 0 after the collector took it */

static struct {
    bool pre, post, untracked_blocks, relative, reads;
    unsigned card_shift;
} options;

struct record {
    uint64_t offset;
    uint64_t size;
    unsigned char contents[];
};

static unsigned char *memory; /* where durable memory really is; at WINDOW, unless pointers are relative */
static unsigned char *cards;
static unsigned char *coarse_cards;
static unsigned char before[MEMORY_BYTES]; /* the memory at the last boundary */
static unsigned char scratch[MEMORY_BYTES];
static bool withheld;                       /* memory holds rubbish where `absent` says so, and the program should see `before` */
static unsigned char absent[MEMORY_BYTES];

struct log {
    unsigned char *bytes;
    uint64_t used;
    uint64_t first[1 << 20]; /* offsets of the records, to walk them backwards */
    uint64_t count;
};
static struct log undo, redo;

/* The events up to each boundary, over all runs. */
struct epoch {
    unsigned char written[MEMORY_BYTES];
    unsigned char pre[MEMORY_BYTES];
    unsigned char post[MEMORY_BYTES];
    unsigned char fresh[MEMORY_BYTES]; /* in a block that was allocated in this epoch */
    unsigned char marked[MEMORY_BYTES]; /* its card was marked */
    unsigned char end[MEMORY_BYTES]; /* the memory, where nothing was withheld */
};
static struct epoch *epochs;
static unsigned epoch_count, epoch_at;
static bool in_program;
static uint64_t allocated;
static unsigned program_at;
static int failures;

u32 parameters[32];

static int places[EPOCHS_MAX]; /* what the program said at each boundary */

/* The first byte of each run of them. */
static void fail(const char *what, uint64_t offset)
{
    static struct {
        const char *what;
        uint64_t offset;
        unsigned epoch;
    } last;
    const bool goes_on = last.what == what && last.epoch == epoch_at && offset == last.offset + 1;
    last.what = what;
    last.offset = offset;
    last.epoch = epoch_at;
    if (!goes_on && failures++ < 12) {
        const int place = epoch_at < EPOCHS_MAX ? places[epoch_at] : 0;
        printf("FAIL program %u, before boundary %u (%d), byte %lu: %s\n", program_at, epoch_at, place, (unsigned long)offset, what);
    }
}

/* ---- The hooks ------------------------------------------------------------------------------------------------- */

static bool offset_of(const void *address, uint64_t size, uint64_t *offset)
{
    *offset = (uint64_t)((uintptr_t)address - (uintptr_t)memory);
    if (*offset >= MEMORY_BYTES || size > MEMORY_BYTES - *offset || size == 0) {
        fail("a hook was called for what is not durable memory, or for nothing", *offset);
        return false;
    }
    return true;
}

static void append(struct log *log, const void *address, uint64_t size)
{
    uint64_t offset;
    if (!in_program || !offset_of(address, size, &offset)) {
        return;
    }
    const uint64_t bytes = (sizeof(struct record) + size + 7) / 8 * 8;
    if (log->used + bytes > LOG_BYTES || log->count == sizeof log->first / sizeof log->first[0]) {
        fail("more hooks than the recorder has room for", offset);
        return;
    }
    struct record *record = (struct record *)(void *)(log->bytes + log->used);
    record->offset = offset;
    record->size = size;
    memcpy(record->contents, memory + offset, size);
    log->first[log->count++] = log->used;
    log->used += bytes;
}

bool nvhooks_is_nvm(const void *address) { return (uintptr_t)address >> NVHOOKS_WINDOW_SHIFT == NVHOOKS_WINDOW_INDEX; }
void *nvhooks_to_absolute_ptr(uintptr_t pointer) { return memory + (pointer - WINDOW); }

static void bring_in(uint64_t offset, uint64_t size)
{
    for (uint64_t i = offset; i < offset + size; ++i) {
        memory[i] = absent[i] ? before[i] : memory[i];
        absent[i] = 0;
    }
}

void nvhooks_pre_nvm_write(void *address, size_t size)
{
    uint64_t offset;
    if (withheld && offset_of(address, size, &offset)) {
        bring_in(offset, size);
    }
    append(&undo, address, size);
}

/* The first record in `undo` of a group of writes that wait. */
static uint64_t waiting_from = UINT64_MAX;

void nvhooks_pre_nvm_write_gathered(void *address, size_t size)
{
    if (waiting_from == UINT64_MAX) {
        waiting_from = undo.count;
    }
    nvhooks_pre_nvm_write(address, size);
}

void nvhooks_writes_gathered(void)
{
    for (uint64_t i = waiting_from; i < undo.count; ++i) {
        const struct record *record = (const struct record *)(const void *)(undo.bytes + undo.first[i]);
        if (memcmp(record->contents, memory + record->offset, record->size) != 0) {
            fail("a write of a group came before all of them were told of", record->offset);
        }
    }
    waiting_from = UINT64_MAX;
}

static void mark_all(unsigned char *table, unsigned shift, uint64_t offset, uint64_t size)
{
    memset(table + (offset >> shift), 1, ((offset + size - 1) >> shift) - (offset >> shift) + 1);
}

void nvhooks_post_nvm_write(void *address, size_t size)
{
    if (waiting_from != UINT64_MAX) {
        fail("a write came while others waited", 0);
    }
    uint64_t offset;
    if (options.card_shift == 0) {
        append(&redo, address, size);
    } else if (size != 0 && offset_of(address, size, &offset)) { /* Code that marks in line leaves a size of 0 to the call. */
        mark_all(cards, options.card_shift, offset, size);
        mark_all(coarse_cards, COARSE_SHIFT, offset, size);
    }
}

void nvhooks_pre_nvm_read(const void *address, size_t size)
{
    uint64_t offset;
    if (in_program && offset_of(address, size, &offset) && withheld) {
        bring_in(offset, size);
    }
}

void nvhooks_post_nvm_read(const void *address, size_t size)
{
    uint64_t offset;
    (void)(in_program && offset_of(address, size, &offset));
}

void nvhooks_pointer_stored(void *location, const void *value)
{
    const void *stored;
    uint64_t offset;
    if (offset_of(location, sizeof stored, &offset)) {
        memcpy(&stored, location, sizeof stored);
        if (stored != value) {
            fail("a stored pointer was reported with another value", offset);
        }
    }
}

/* ---- What programs call ---------------------------------------------------------------------------------------- */

u32 opaque(u32 value) { return value * 2654435761u; }

void *recorder_allocate(u64 bytes)
{
    const uint64_t start = allocated;
    allocated += (bytes + 15) / 16 * 16;
    if (allocated > MEMORY_BYTES) {
        fail("the program allocates more than there is", start);
        exit(2);
    }
    if (epoch_at < EPOCHS_MAX) {
        memset(epochs[epoch_at].fresh + start, 1, bytes);
    }
    return options.relative ? (void *)(WINDOW + start) : memory + start;
}

u64 described_fill(u64 *to, u64 count, u64 value)
{
    for (u64 i = 0; i < count; ++i) {
        to[i] = value + i * 0x9e3779b97f4a7c15u;
    }
    return count * sizeof *to;
}

void attributed_fill(u64 value, u8 *behind, u64 bytes)
{
    for (u64 i = 0; i < bytes; ++i) {
        behind[8 + i] = (u8)((value + i) * 0x9e3779b97f4a7c15u >> 56);
    }
}

static uint64_t random_state;
static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Contents that no program can have written: what is written in this epoch changes. */
static void begin_epoch(void)
{
    for (uint64_t i = 0; i < MEMORY_BYTES; i += 8) {
        const uint64_t value = next_random();
        memcpy(memory + i, &value, 8);
    }
    memcpy(before, memory, MEMORY_BYTES);
    undo.used = undo.count = redo.used = redo.count = 0;
    if (withheld) {
        memset(absent, 1, MEMORY_BYTES);
        for (uint64_t i = 0; i < MEMORY_BYTES; ++i) {
            memory[i] ^= (unsigned char)(i * 151 + 1) | 1;
        }
    }
}

/* The undo log must give the memory before, the redo log the memory now. */
static void replay(const struct epoch *epoch)
{
    if (options.pre) {
        memcpy(scratch, memory, MEMORY_BYTES);
        for (uint64_t i = undo.count; i-- > 0;) {
            const struct record *record = (const struct record *)(const void *)(undo.bytes + undo.first[i]);
            memcpy(scratch + record->offset, record->contents, record->size);
        }
        for (uint64_t i = 0; i < MEMORY_BYTES; ++i) {
            if (scratch[i] != before[i] && !(options.untracked_blocks && epoch->fresh[i])) {
                fail("undone, it is not what it was: no hook before its first write", i);
            }
        }
    }
    if (options.post) {
        memcpy(scratch, before, MEMORY_BYTES);
        for (uint64_t i = 0; i < redo.count; ++i) {
            const struct record *record = (const struct record *)(const void *)(redo.bytes + redo.first[i]);
            memcpy(scratch + record->offset, record->contents, record->size);
        }
        for (uint64_t i = 0; i < MEMORY_BYTES; ++i) {
            if (scratch[i] != memory[i]) {
                fail("redone, it is not what it is: no hook after its last write", i);
            }
        }
    }
}

static void take_ranges(const struct log *log, unsigned char *into)
{
    for (uint64_t i = 0; i < log->count; ++i) {
        const struct record *record = (const struct record *)(const void *)(log->bytes + log->first[i]);
        memset(into + record->offset, 1, record->size);
    }
}

/* A coarse card is marked if one of the cards under it is. */
static void take_cards(void)
{
    const uint64_t under = (uint64_t)1 << (COARSE_SHIFT - options.card_shift);
    for (uint64_t i = 0; i < MEMORY_BYTES >> COARSE_SHIFT; ++i) {
        unsigned char any = 0;
        for (uint64_t card = i * under; card < (i + 1) * under; ++card) {
            any |= cards[card] & 1;
        }
        if (any != coarse_cards[i]) {
            fail(any != 0 ? "a card is marked, and the coarse one over it is not" : "a coarse card is marked, and none under it",
                 i << COARSE_SHIFT);
        }
    }
    memset(cards, TAKEN_CARD, MEMORY_BYTES >> options.card_shift);
    memset(coarse_cards, 0, MEMORY_BYTES >> COARSE_SHIFT);
}

void boundary(int place)
{
    if (waiting_from != UINT64_MAX) {
        fail("a group of writes never came", 0);
    }
    if (epoch_at >= EPOCHS_MAX) {
        fail("more boundaries than the recorder has room for", 0);
        exit(2);
    }
    places[epoch_at] = place;
    struct epoch *epoch = &epochs[epoch_at];
    if (withheld) {
        bring_in(0, MEMORY_BYTES);
        for (uint64_t i = 0; i < MEMORY_BYTES; ++i) {
            if (memory[i] != epoch->end[i]) {
                fail("another value than it should be: something was read without a hook before", i);
            }
        }
        ++epoch_at;
        begin_epoch();
        return;
    }
    memcpy(epoch->end, memory, MEMORY_BYTES);
    replay(epoch);
    take_ranges(&undo, epoch->pre);
    take_ranges(&redo, epoch->post);
    for (uint64_t i = 0; i < MEMORY_BYTES; ++i) {
        epoch->written[i] |= memory[i] != before[i];
        if (options.card_shift != 0) {
            epoch->marked[i] |= cards[i >> options.card_shift] & 1;
        }
    }
    if (options.card_shift != 0) {
        take_cards();
    }
    ++epoch_at;
    begin_epoch();
}

/* ---- Judging ---------------------------------------------------------------------------------------------------- */

static void judge_ranges(const struct epoch *epoch, uint64_t slack_from)
{
    for (uint64_t i = 0; i < MEMORY_BYTES; ++i) {
        const bool fresh = options.untracked_blocks && epoch->fresh[i];
        const bool loose = fresh || (i >= slack_from && i < slack_from + MEMORY_BYTES && !epoch->fresh[i]);
        if (options.pre && epoch->written[i] && !epoch->pre[i] && !fresh) {
            fail("written without a hook before", i);
        }
        if (options.pre && epoch->pre[i] && !epoch->written[i] && !loose) {
            fail("a hook before, but not written", i);
        }
        if (options.post && epoch->written[i] && !epoch->post[i]) {
            fail("written without a hook after", i);
        }
        if (options.post && epoch->post[i] && !epoch->written[i] && !loose) {
            fail("a hook after, but not written", i);
        }
    }
}

/* A card is marked if one of its bytes was written; not otherwise, unless one of them may be hooked for nothing. */
static void judge_cards(const struct epoch *epoch, uint64_t slack_from)
{
    const uint64_t card_bytes = 1ul << options.card_shift;
    for (uint64_t start = 0; start < MEMORY_BYTES; start += card_bytes) {
        bool written = false;
        bool loose = false;
        for (uint64_t i = start; i < start + card_bytes; ++i) {
            written |= epoch->written[i];
            loose |= i >= slack_from || (options.untracked_blocks && epoch->fresh[i]);
        }
        if (written && !epoch->marked[start]) {
            fail("written, but its card is not marked", start);
        }
        if (!written && epoch->marked[start] && !loose) {
            fail("a card is marked of which nothing was written", start);
        }
    }
}

static void run_once(const struct program *program, uint64_t seed)
{
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    allocated = (program->bytes + 4095) / 4096 * 4096;
    epoch_at = 0;
    begin_epoch();
    unsigned char *ordinary = malloc(program->bytes);
    for (uint64_t i = 0; i < program->bytes; ++i) {
        ordinary[i] = (unsigned char)(next_random() >> 11);
    }
    in_program = true;
    program->run(options.relative ? (void *)WINDOW : memory, ordinary);
    boundary(-1);
    in_program = false;
    free(ordinary);
}

static void test_program(const struct program *program)
{
    memset(epochs, 0, EPOCHS_MAX * sizeof *epochs);
    epoch_count = 0;
    for (unsigned run = 0; run < RUNS; ++run) {
        run_once(program, run + 1);
        if (run != 0 && epoch_at != epoch_count) {
            fail("the number of boundaries depends on the contents: the program is not a test", 0);
        }
        epoch_count = epoch_at;
        if (options.reads) {
            withheld = true;
            run_once(program, run + 1);
            withheld = false;
        }
    }
    for (epoch_at = 0; epoch_at < epoch_count; ++epoch_at) {
        judge_ranges(&epochs[epoch_at], program->slack_from);
        if (options.card_shift != 0) {
            judge_cards(&epochs[epoch_at], program->slack_from);
        }
    }
}

static void *map(uintptr_t at, size_t bytes)
{
    void *mapped = mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != 0 ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (mapped == MAP_FAILED) {
        perror("recorder: mmap");
        exit(2);
    }
    return mapped;
}

int main(int count, char **arguments)
{
    for (int i = 1; i < count; ++i) {
        options.pre |= strcmp(arguments[i], "--pre") == 0;
        options.post |= strcmp(arguments[i], "--post") == 0;
        options.untracked_blocks |= strcmp(arguments[i], "--untracked-blocks") == 0;
        options.relative |= strcmp(arguments[i], "--relative") == 0;
        options.reads |= strcmp(arguments[i], "--reads") == 0;
        if (strncmp(arguments[i], "--cards=", 8) == 0) {
            options.card_shift = (unsigned)atoi(arguments[i] + 8);
        }
        if (strncmp(arguments[i], "--parameters=", 13) == 0) {
            char *text = arguments[i] + 13;
            for (unsigned p = 0; p < 32; ++p) {
                parameters[p] = (u32)strtoul(text, &text, 10);
                text += *text == ',';
            }
        }
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    memory = map(options.relative ? 0 : WINDOW, MEMORY_BYTES);
    cards = options.card_shift != 0 ? map(CARD_TABLE, MEMORY_BYTES >> options.card_shift) : NULL;
    coarse_cards = options.card_shift != 0 ? map(COARSE_TABLE, MEMORY_BYTES >> COARSE_SHIFT) : NULL;
    epochs = map(0, EPOCHS_MAX * sizeof *epochs);
    undo.bytes = map(0, LOG_BYTES);
    redo.bytes = map(0, LOG_BYTES);
    for (program_at = 0; program_at < program_count; ++program_at) {
        test_program(&programs[program_at]);
    }
    if (failures != 0) {
        printf("FAIL %d findings\n", failures);
    }
    return failures != 0;
}
