// RUN: optimizations=static-check level=-O1,-g unknown-call=warn
// RUN: optimizations=static-check level=-O0,-g unknown-call=error expect=fail prefix=ERROR
// RUN: optimizations=static-check level=-O1,-g unknown-call=off prefix=OFF
// -stillpoint-unknown-call names what has no description, with its place.
#include "recorder.h"

void *memcpy(void *, const void *, u64);
int sprintf(char *, const char *, ...);
i64 readv(int, void *, int);
int unknown(char *, u32 *);
int only_reads(const char *) __attribute__((pure));
int by_number(u64);

// OFF-NOT: Wstillpoint
// CHECK: unknown_calls.c:{{.*}}warning: the address of 'sprintf' is taken: calls through it have no hooks
int (*printer)(char *, const char *, ...) = sprintf;

static __attribute__((noinline)) void own(char *p) { *p = 1; }

int calls(char *p, u32 *q)
{
    u32 local;
    own(p);
    memcpy(p, q, 4);
    only_reads(p);
    by_number((u64)p);
    // CHECK: unknown_calls.c:[[# @LINE + 3]]:12: warning: 'unknown' has no description: what it writes through argument 1 has no hooks
    // CHECK-SAME: [-Wstillpoint-unknown-call]
    // ERROR: unknown_calls.c:[[# @LINE + 1]]:12: error: 'unknown' has no description
    return unknown(p, q) + unknown((char *)&local, &local);
}

// CHECK: unknown_calls.c:[[# @LINE + 1]]:{{.*}}warning: 'readv' is described in part: what else it writes through argument 2
i64 in_part(void *list) { return readv(0, list, 2); }

// CHECK-NOT: warning:
