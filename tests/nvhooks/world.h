/* The memory that generated programs write, and what they are made of (program_generator.py). */
#ifndef STILLPOINT_TESTS_NVHOOKS_WORLD_H
#define STILLPOINT_TESTS_NVHOOKS_WORLD_H

#include "recorder.h"

#ifdef __cplusplus
extern "C" {
#else
#include <stdbool.h>
#endif
void *memcpy(void *, const void *, u64);
void *memmove(void *, const void *, u64);
void *memset(void *, int, u64);
char *strcpy(char *, const char *);
char *strcat(char *, const char *);
char *strncpy(char *, const char *, u64);
char *strncat(char *, const char *, u64);
char *stpcpy(char *, const char *);
u64 strlen(const char *);
int strcmp(const char *, const char *);
int memcmp(const void *, const void *, u64);
int sprintf(char *, const char *, ...);
int snprintf(char *, u64, const char *, ...);
void qsort(void *, u64, u64, int (*)(const void *, const void *));
#ifdef __cplusplus
}
inline void *operator new(u64, void *place) noexcept { return place; }
#endif
#define P parameters
#define M(x) (((u64)(x) ^ 0x5851f42d4c957f2dul) * 0x9e3779b97f4a7c15ul >> 7)
#define NOINLINE __attribute__((noinline))
typedef u32 lanes __attribute__((vector_size(16)));
struct inner { u8 tag; u8 more[3]; u32 count; u64 key; }; /* without padding, which would be rubbish of the stack in copies */
struct record { u8 a; u16 b; u32 c; u64 d; struct inner in; u32 list[6]; double f; void *link; };
struct __attribute__((packed)) tight { u8 a; u32 b; u16 c; u64 d; u8 e[3]; };
union either { u64 whole; u32 half[2]; u8 byte[8]; double real; struct { u16 x; u32 y; } pair; };
struct bits { u32 a : 3; u32 b : 11; u32 c : 18; u64 d : 40; u64 e : 24; };
struct world {
    struct record record[8]; struct tight tight[6]; union either either[6];
    u8 bytes[200]; u16 shorts[100]; u32 words[96]; u64 longs[64]; double reals[32]; float floats[64];
    u32 grid[8][12]; char text[6][48]; void *pointers[8]; long double wide[3]; lanes vectors[6]; bool flags[16];
    /* From here on a hook may cover what does not change. */
    struct bits bits[6]; u32 counters[16]; lanes changed[4]; char line[4][64]; u32 sorted[24];
};
static const char *const words_of[8] = {"",        "a",           "to",              "pool",
                                        "durable", "checkpoints", "quiescent state", "a failure-atomic section"};
static __attribute__((unused)) NOINLINE const char *word(u32 n) { return words_of[n % 8]; }
static __attribute__((unused)) int compare(const void *a, const void *b)
{
    const u32 x = *(const u32 *)a, y = *(const u32 *)b;
    return x < y ? -1 : x > y;
}
static __attribute__((unused)) u32 global_words[16];
static __attribute__((unused)) __thread u64 thread_longs[8];

#endif
