// RUN: optimizations=static-check,coalesce-loops level=-O1
// RUN: optimizations=static-check,coalesce-loops level=-O2,-fno-vectorize,-fno-unroll-loops
// RUN: optimizations=static-check level=-O1 prefix=EACH
// A loop that writes a run of bytes gets one hook before it and one after it. A loop that may leave out a byte of the run, or end
// a FASE, keeps its hooks.
#include "recorder.h"

void unknown(void);
struct pair { u32 a; u32 b; };

// CHECK-LABEL: define{{.*}} @run(
// CHECK:         %[[BYTES:[0-9a-z.]+]] = shl {{.*}}, 2
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 %[[BYTES]])
// CHECK:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 {{.*}}[[BYTES]])
// CHECK-NOT:     @nvhooks
// CHECK:         store i32
// CHECK-NOT:     @nvhooks
// CHECK:         }
// EACH-LABEL:  define{{.*}} @run(
// EACH:          phi
// EACH:          call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 4)
// EACH:          store i32
// EACH:          call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 4)
void run(u32 *p, u64 n)
{
    for (u64 i = 0; i < n; ++i) {
        p[i] = (u32)i * 3 + 1;
    }
}

// CHECK-LABEL: define{{.*}} @backwards(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 {{%.*}})
// CHECK-NOT:     i64 4)
void backwards(u32 *p, long n)
{
    for (long i = n - 1; i >= 0; --i) {
        p[i] = (u32)i * 3 + 1;
    }
}

// Every second word: the gaps are not written.
// CHECK-LABEL: define{{.*}} @strided(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 4)
// CHECK:         store i32
// CHECK:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 4)
void strided(struct pair *p, u64 n)
{
    for (u64 i = 0; i < n; ++i) {
        p[i].b = (u32)i * 3 + 1;
    }
}

// CHECK-LABEL: define{{.*}} @conditional(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 4)
// CHECK:         store i32
// CHECK:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 4)
void conditional(u32 *p, u64 n)
{
    for (u64 i = 0; i < n; ++i) {
        if (opaque((u32)i) & 1) {
            p[i] = (u32)i * 3 + 1;
        }
    }
}

// CHECK-LABEL: define{{.*}} @early_exit(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 4)
// CHECK:         store i32
void early_exit(u32 *p, u64 n)
{
    for (u64 i = 0; i < n; ++i) {
        p[i] = (u32)i * 3 + 1;
        if (opaque((u32)i) & 1) {
            break;
        }
    }
}

// CHECK-LABEL: define{{.*}} @ends_a_fase(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 4)
// CHECK:         store i32
// CHECK:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 4)
// CHECK:         call void @unknown
void ends_a_fase(u32 *p, u64 n)
{
    for (u64 i = 0; i < n; ++i) {
        p[i] = (u32)i * 3 + 1;
        unknown();
    }
}

// The next store may go anywhere.
// CHECK-LABEL: define{{.*}} @chased(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 4)
void chased(u32 *p, const u32 *index, u64 n)
{
    for (u64 i = 0; i < n; ++i) {
        p[index[i]] = 1;
    }
}

// Two runs that lie apart: as long as each of them is, whichever comes first.
// CHECK-LABEL: define{{.*}} @two_runs(
// CHECK:         %[[LONG:[0-9a-z.]+]] = shl {{.*}}, 2
// CHECK-COUNT-2: call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 %[[LONG]])
// CHECK-NOT:     call void @nvhooks_pre_nvm_write
void two_runs(u32 *p, u64 n)
{
    for (u64 i = 0; i < n; ++i) {
        p[i + 100] = (u32)i * 3 + 1;
        p[i] = (u32)i;
    }
}
