/* The functions that generated programs of the differential fuzz may call, and the shape of a program. */
#ifndef STILLPOINT_TESTS_NVHOOKS_RECORDER_H
#define STILLPOINT_TESTS_NVHOOKS_RECORDER_H

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef long i64;

/* Numbers that the compiler does not know and the generator does: bounds, strides, conditions. */
extern u32 parameters[32];

/* Unknown to the pass: may begin or end a FASE. Everything written before it must be hooked before it. */
void boundary(int place);
/* In the layers' keeps-fase: hooks may move across it. */
u32 opaque(u32 value);
/* The layers' allocator; the block's contents are as random as all durable memory. */
void *recorder_allocate(u64 bytes);
/* Precompiled, and described in recorder.yaml: writes `count` words at `to`, and returns how many bytes that were. */
u64 described_fill(u64 *to, u64 count, u64 value);
/* A description by an attribute. */
#define NVHOOKS_DESCRIBED(text) __attribute__((annotate(text)))
NVHOOKS_DESCRIBED("nvm_write:arg1 + 8:arg2") void attributed_fill(u64 value, u8 *behind, u64 bytes);

/* One generated program: `durable` lies in durable memory, `ordinary` does not. */
typedef void program_function(void *durable, void *ordinary);

struct program {
    program_function *run;
    u64 bytes;       /* of its durable memory, without allocations */
    u64 slack_from;  /* from this offset on hooks may cover bytes that did not change */
};
extern const struct program programs[];
extern const u32 program_count;

#ifdef __cplusplus
}
#endif
#endif
