/* Runs the random programs of tests/nvhooks as transactions. Usage: PROGRAM PARAMETERS [check]
 * Each program stores into a world; it runs once as it is, in a child, and once as the body of a transaction, on durable memory with the
 * same contents, after another transaction that is cancelled and must leave nothing. Both must end with the same bytes; addresses in them
 * count from their own world. The process then kills itself, and a second one, with `check`, must find in the pool what the children have
 * left in the file "expected". */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorder.h"
#include "spht-hooks.h"

enum { WORLD = 1 << 18, ALL = 1 << 20, PROGRAMS = 4 };

u32 parameters[32];
static u8* blocks; /* the next block of recorder_allocate */

void boundary(int place) { (void)place; }
u32 opaque(u32 value) { return value * 2654435761u; }
void* recorder_allocate(u64 bytes)
{
    u8* made = blocks;
    blocks += (bytes + 15) / 16 * 16;
    return made;
}
u64 described_fill(u64* to, u64 count, u64 value)
{
    for (u64 i = 0; i < count; ++i)
        to[i] = value + i * 0x9e3779b97f4a7c15u;
    return count * sizeof *to;
}
void attributed_fill(u64 value, u8* behind, u64 bytes)
{
    for (u64 i = 0; i < bytes; ++i)
        behind[8 + i] = (u8)((value + i) * 0x9e3779b97f4a7c15u >> 56);
}

struct task {
    const struct program* program;
    u8 *durable, *ordinary;
    bool cancels;
};
/* A function of the transactional memory ABI, which clones call as it is. 1: in a transaction that can be cancelled. */
u32 _ITM_inTransaction(void);

static void body(void* argument)
{
    struct task* task = argument;
    blocks = task->durable + WORLD;
    task->program->run(task->durable, task->ordinary);
    if (task->cancels && _ITM_inTransaction() == 1)
        sp_tm_cancel();
}

static bool put(u8* durable, const u8* world)
{
    sp_spht_transaction* const fills = sp_spht_begin(0, NULL);
    return sp_spht_write(fills, durable, world, WORLD) == SP_OK && sp_spht_commit(fills) == SP_OK;
}

static void fill(u8* world, unsigned seed)
{
    u64 state = seed * 2654435761u + 1;
    for (size_t i = 0; i < WORLD; ++i) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        world[i] = (u8)state;
    }
}

/* Words that hold addresses hold them at any multiple of 2: packed structures. */
static long first_difference(const u8* one, const u8* other)
{
    for (size_t i = 0; i < ALL; ++i) {
        if (one[i] == other[i])
            continue;
        bool is_address = false;
        for (size_t back = 0; back < 8 && back <= i && !is_address; ++back) {
            u64 left, right;
            memcpy(&left, one + i - back, 8), memcpy(&right, other + i - back, 8);
            is_address = left - (u64)one < ALL && left - (u64)one == right - (u64)other;
        }
        if (!is_address)
            return (long)i;
    }
    return -1;
}

int main(int count, char** words)
{
    u8* durable = sp_root("worlds", (size_t)ALL * PROGRAMS);
    char* text = count > 1 ? words[1] : "";
    for (int i = 0; i < 32; ++i, text += *text == ',')
        parameters[i] = (u32)strtoul(text, &text, 10);
    const size_t bytes = (size_t)ALL * PROGRAMS;
    u8* plain = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    u8* ordinary = malloc(WORLD);
    if (durable == NULL || program_count > PROGRAMS)
        return 2;
    for (unsigned i = 0; i < program_count; ++i) {
        u8* here = durable + (size_t)i * ALL;
        if (count > 2) {
            FILE* file = fopen("expected", "rb");
            u64 base = 0;
            if (file == NULL || fseek(file, (long)(i * (ALL + 8ul)), SEEK_SET) != 0 || fread(&base, 8, 1, file) != 1 ||
                fread(plain, ALL, 1, file) != 1 || base != (u64)here)
                return 2;
            fclose(file);
            for (size_t at = 0; at < ALL; ++at)
                if (plain[at] != here[at])
                    return printf("program %u: byte %zu is not durable\n", i, at), 1;
            continue;
        }
        u8* there = plain + (size_t)i * ALL;
        fill(there, i), fill(ordinary, i + 100);
        if (!put(here, there))
            return 2;
        const struct task cancelled = {&programs[i], here, ordinary, true};
        const int code = sp_tm_run(body, (void*)&cancelled, 0);
        if (code == SP_E_ABORTED && memcmp(here, there, WORLD) != 0)
            return printf("program %u: a cancelled transaction has left something\n", i), 1;
        if (code != SP_OK && code != SP_E_ABORTED)
            return printf("program %u: %s\n", i, sp_error_string(code)), 1;
        fill(ordinary, i + 100);
        if (code == SP_OK && !put(here, there)) /* it was irrevocable */
            return 2;
        const struct task as_it_is = {&programs[i], there, ordinary, false}, transaction = {&programs[i], here, ordinary, false};
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            body((void*)&as_it_is);
            _exit(0);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0)
            return printf("program %u: the child ended with %x\n", i, status), 2;
        if (sp_tm_run(body, (void*)&transaction, 0) != SP_OK)
            return printf("program %u: %s\n", i, sp_last_error()), 1;
        const long differs = first_difference(there, here);
        if (differs >= 0)
            return printf("program %u: byte %ld differs\n", i, differs), 1;
        FILE* file = fopen("expected", i == 0 ? "wb" : "ab");
        const u64 base = (u64)here;
        if (file == NULL || fwrite(&base, 8, 1, file) != 1 || fwrite(here, ALL, 1, file) != 1 || fclose(file) != 0)
            return 2;
    }
    puts("alike");
    fflush(stdout);
    if (count <= 2)
        kill(getpid(), SIGKILL);
    return 0;
}
