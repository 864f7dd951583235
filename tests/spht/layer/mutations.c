/* Random changes of a structure, by functions that know nothing of transactions. Each runs twice from the same seed: outside of a
 * transaction on ordinary memory, and as a transaction's body on durable memory. Both must then hold the same; after a transaction that
 * was cancelled, durable memory must be as before. Usage: mutations ROUNDS SEED */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spht-hooks.h"

typedef float floats __attribute__((vector_size(16)));
typedef uint8_t bytes16 __attribute__((vector_size(16)));
struct pair {
    int32_t key, other;
    int64_t value;
};
struct __attribute__((packed)) ragged {
    char tag;
    uint64_t wide;
    uint16_t narrow;
    double real;
};
struct state {
    uint8_t bytes[40];
    uint16_t shorts[16];
    uint32_t ints[16];
    uint64_t longs[16];
    struct {
        unsigned a : 3;
        unsigned b : 13;
        unsigned long c : 40;
        int d : 5;
    } bits;
    bool flags[8];
    float reals[16];
    double doubles[8];
    long double wide_real;
    floats vectors[4];
    bytes16 byte_vectors[2];
    __int128 huge;
    struct pair pairs[12];
    struct ragged ragged[3];
    union {
        uint64_t word;
        uint8_t bytes[8];
        float real;
    } mixed;
    char text[64];
    uint64_t sum;
};

/* A list of pairs beside it: pointers differ in the two copies, so its contents are summed up. */
struct node {
    struct node* next;
    uint64_t value;
    char name[20];
};
struct whole {
    struct state state;
    struct node* first;
    uint64_t nodes;
};

struct work {
    struct whole* on;
    uint64_t seed;
    unsigned steps;
    bool is_durable, cancels;
};

static uint64_t next(uint64_t* seed)
{
    *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
    return *seed;
}

__attribute__((noinline)) static uint64_t summed(int count, ...)
{
    va_list list;
    uint64_t sum = 0;
    va_start(list, count);
    for (int i = 0; i < count; ++i)
        sum += *va_arg(list, uint64_t*);
    va_end(list);
    return sum;
}

typedef void change(struct state*, uint64_t*);
static void change_bytes(struct state* s, uint64_t* r)
{
    for (int i = 0; i < 40; ++i)
        s->bytes[i] = (uint8_t)(s->bytes[i] * 3 + next(r));
    s->bytes[next(r) % 40]++;
}
static void change_integers(struct state* s, uint64_t* r)
{
    s->shorts[next(r) % 16] ^= (uint16_t)next(r);
    s->ints[next(r) % 16] += (uint32_t)next(r);
    s->longs[next(r) % 16] -= next(r);
    for (int i = 0; i < 16; ++i)
        s->ints[i] += s->shorts[i];
    s->huge = s->huge * 3 + (__int128)next(r);
}
static void change_bits(struct state* s, uint64_t* r)
{
    s->bits.a += next(r) & 7;
    s->bits.c ^= next(r) & 0xffffffffff;
    s->bits.d = -s->bits.d + (int)(next(r) & 3);
    s->bits.b = s->bits.a * 11u;
    s->flags[next(r) % 8] = s->bits.b & 1;
}
static void change_reals(struct state* s, uint64_t* r)
{
    for (int i = 0; i < 16; ++i)
        s->reals[i] = s->reals[i] * 0.5f + (float)(next(r) % 100);
    for (int i = 0; i < 8; ++i)
        s->doubles[i] += (double)s->reals[i] - s->doubles[7 - i] * 0.25;
    s->wide_real = s->wide_real * 0.5L + (long double)s->doubles[3];
    s->vectors[next(r) % 4] += s->vectors[next(r) % 4] * 0.5f + 1;
    s->byte_vectors[next(r) % 2] ^= (bytes16){1, 2, 3, (uint8_t)next(r)};
}
__attribute__((noinline)) static struct pair swapped(struct pair one, int32_t by)
{
    struct pair made = {(int32_t)one.value, by, one.key + by};
    return made;
}
struct large {
    uint64_t words[6];
};
__attribute__((noinline)) static uint64_t by_value(struct large one, uint64_t by)
{
    one.words[by % 6] += by;
    return one.words[0] * 3 + one.words[5];
}
/* Pure: their arguments are copies, and the result is copied too. */
SP_TM_PURE static struct large reversed(struct large one)
{
    struct large made;
    for (int i = 0; i < 6; ++i)
        made.words[i] = one.words[5 - i] + (uint64_t)i;
    return made;
}
static void change_large(struct state* s, uint64_t* r)
{
    struct large* large = (struct large*)(s->longs + next(r) % 10);
    s->longs[next(r) % 16] ^= 99;
    s->sum += by_value(*large, next(r));
    *large = reversed(*large);
    s->longs[next(r) % 16] += by_value(*large, s->sum);
}
static void change_structures(struct state* s, uint64_t* r)
{
    struct pair kept[12];
    memcpy(kept, s->pairs, sizeof kept);
    for (int i = 0; i < 12; ++i)
        s->pairs[i] = swapped(kept[next(r) % 12], (int32_t)next(r));
    s->pairs[next(r) % 12] = s->pairs[next(r) % 12];
    struct ragged* one = &s->ragged[next(r) % 3];
    one->wide += next(r), one->narrow ^= (uint16_t)next(r), one->real += 1.5, one->tag++;
    s->ragged[next(r) % 3] = *one;
    s->mixed.bytes[next(r) % 8] ^= 0x55;
    s->mixed.word += 3;
}
static void change_blocks(struct state* s, uint64_t* r)
{
    size_t from = next(r) % 20, to = next(r) % 20, size = next(r) % 20;
    memmove(s->bytes + to, s->bytes + from, size);
    memset(s->shorts + next(r) % 8, (int)next(r), next(r) % 17);
    memcpy(s->ints, s->ints + 8, 4 * (next(r) % 9));
    if (memcmp(s->bytes, s->bytes + 20, 3) < 0)
        s->bytes[7] ^= 0x80;
}
static void change_text(struct state* s, uint64_t* r)
{
    char own[32];
    size_t length = strlen(s->text);
    if (length > 40)
        length = 0;
    s->text[length] = (char)('a' + next(r) % 26), s->text[length + 1] = 0;
    strncpy(own, s->text, sizeof own - 1), own[31] = 0;
    if (strcmp(own, "m") > 0 && strchr(s->text, 'e') != NULL)
        strcat(strcpy(s->text, own), "!");
}
static uint64_t climbs(struct state* s, unsigned depth)
{
    return depth == 0 ? s->longs[0]++ : climbs(s, depth - 1) + s->longs[depth % 16]--;
}
static void change_by_calls(struct state* s, uint64_t* r)
{
    s->sum += climbs(s, (unsigned)(next(r) % 30));
    s->sum += summed(3, &s->longs[1], &s->longs[next(r) % 16], &s->sum);
    uint64_t* const there[2] = {&s->sum, &s->longs[9]};
    *there[next(r) % 2] += 17;
}
static void change_some(struct state* s, uint64_t* r)
{
    const uint32_t limit = (uint32_t)next(r);
    for (int i = 0; i < 16; ++i)
        if (s->ints[i] > limit)
            s->longs[i] += s->ints[i] / 3;
    for (int i = 0; i < 16; ++i)
        if (s->longs[i] & 4)
            s->reals[i] = s->reals[s->shorts[i] % 16] + 1;
}
static change* const changes[] = {change_bytes,  change_integers, change_bits,     change_reals, change_structures,
                                  change_blocks, change_text,     change_by_calls, change_some,  change_large};
enum { CHANGES = sizeof changes / sizeof *changes };
change* volatile_table[CHANGES]; /* filled at run time: the compiler does not know what is called */

static void change_list(struct work* work, uint64_t* r)
{
    struct whole* w = work->on;
    if (next(r) % 3 != 0) {
        struct node* made = work->is_durable ? sp_malloc(sizeof *made) : malloc(sizeof *made);
        made->value = next(r), made->next = w->first;
        memcpy(made->name, "a name of a node", 17);
        w->first = made, w->nodes++;
    } else {
        for (struct node** at = &w->first; *at != NULL; at = &(*at)->next)
            if ((*at)->value % 3 == 0) {
                struct node* gone = *at;
                *at = gone->next, w->nodes--;
                work->is_durable ? sp_free(gone) : free(gone);
                break;
            }
    }
    for (struct node* one = w->first; one != NULL; one = one->next)
        w->state.sum = w->state.sum * 31 + one->value + strlen(one->name);
}

static void body(void* argument)
{
    struct work* work = argument;
    uint64_t r = work->seed;
    for (unsigned i = 0; i < work->steps; ++i) {
        volatile_table[next(&r) % CHANGES](&work->on->state, &r);
        if (next(&r) % 2 == 0)
            change_list(work, &r);
    }
    char* own = malloc(100);
    memset(own, 7, 100);
    own[50] += own[49];
    work->on->state.sum += (uint64_t)own[50];
    free(own);
    if (work->cancels)
        sp_tm_cancel();
}

/* `long double` and packed members have bytes that hold nothing; both copies begin as zeroes, and stores of ten bytes leave these. */
static bool are_alike(const struct whole* one, const struct whole* other)
{
    return memcmp(&one->state, &other->state, sizeof one->state) == 0 && one->nodes == other->nodes;
}

int main(int count, char** words)
{
    struct whole *durable = sp_root("whole", sizeof *durable), model = {.nodes = 0}, before;
    if (durable == NULL || count != 3)
        return fprintf(stderr, "%s\n", sp_last_error()), 1;
    memcpy(volatile_table, changes, sizeof changes);
    uint64_t seed = strtoull(words[2], NULL, 10) * 2654435761u + 1;
    for (unsigned long round = 0; round < strtoul(words[1], NULL, 10); ++round) {
        struct work work = {durable, next(&seed), (unsigned)(next(&seed) % 12), true, next(&seed) % 4 == 0};
        memcpy(&before, durable, sizeof before);
        int error = sp_tm_run(body, &work, 0);
        if (error != (work.cancels ? SP_E_ABORTED : SP_OK))
            return printf("round %lu: error %d\n", round, error), 1;
        if (work.cancels) {
            if (memcmp(&before, durable, sizeof before) != 0)
                return printf("round %lu: a cancelled transaction has left something\n", round), 1;
            continue;
        }
        work.on = &model, work.is_durable = false;
        body(&work);
        if (!are_alike(durable, &model)) {
            for (size_t i = 0; i < sizeof model.state; ++i)
                if (((char*)&durable->state)[i] != ((char*)&model.state)[i])
                    return printf("round %lu: byte %zu differs\n", round, i), 1;
            return printf("round %lu: the lists differ\n", round), 1;
        }
    }
    puts("alike");
    return 0;
}
