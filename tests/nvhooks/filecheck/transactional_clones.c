// RUN: hooks=none transactions=opaque level=-O1
// RUN: hooks=writes transactions=opaque level=-O1 prefix=HOOKED
// RUN: hooks=none transactions=opaque level=-O1 unknown-call=error expect=fail prefix=SAID
// The function stays as it is, or has hooks; its clone calls the transactional memory ABI, but for its own stack.
#include "recorder.h"

void *malloc(u64);
void *memcpy(void *, const void *, u64);
void elsewhere(u32 *p);
int sp_tm_run(void (*body)(void *), void *argument, unsigned flags);
struct pair { u64 a, b, c, d; };
void fill(struct pair *);

// CHECK:         @stillpoint.tm_clone_table = internal global {{.*}}@body, ptr @_ZGTt4body{{.*}} section ".tm_clone_table"
// CHECK-LABEL: define{{.*}} @plain(
// CHECK-NOT:     @_ITM_
// CHECK:         store i32
// HOOKED-LABEL: define{{.*}} @plain(
// HOOKED:        call void @nvhooks_post_nvm_write(
u32 plain(u32 *p, u64 *q, float *f)
{
    *q = *p;
    *f = 1.5f;
    p[1] = 7;
    return p[2];
}

// CHECK-LABEL: define{{.*}} @calls(
u64 *calls(u32 *p, void (*through)(u32 *))
{
    u64 *made = malloc(8);
    *made = opaque(*p);
    elsewhere(p);
    through(p);
    __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST);
    return made;
}

// CHECK-LABEL: define{{.*}} @own_stack(
u64 own_stack(struct pair *p, struct pair *q)
{
    struct pair own, other;
    fill(&own);
    other = own;
    fill(&other);
    *p = own;
    own = *q;
    fill(&own);
    return own.a + other.b;
}

static void body(void *p) { plain(p, p, p), calls(p, *(void (**)(u32 *))p); }
// CHECK-LABEL: define{{.*}} @run(
// CHECK:         call {{.*}}i32 @sp_tm_run_pair(ptr {{.*}}@body, ptr {{.*}}@_ZGTt4body, ptr {{.*}}, i32 {{.*}}0)
int run(void *p) { return sp_tm_run(body, p, 0); }

// CHECK-LABEL: define{{.*}} @_ZGTt5plain(
// CHECK:         [[WORD:%.*]] = call i32 @_ITM_RU4(ptr %0)
// CHECK:         call void @_ITM_WU8(ptr %1, i64
// CHECK:         call void @_ITM_WU4(ptr %2, i32 1069547520)
// CHECK:         call void @_ITM_WU4(ptr {{.*}}, i32 7)
// CHECK:         call i32 @_ITM_RU4(ptr
// CHECK:         ret i32
// HOOKED-LABEL: define{{.*}} @_ZGTt5plain(
// HOOKED-NOT:    @nvhooks_
// HOOKED:        call i32 @_ITM_RU4(ptr %0)

// CHECK-LABEL: define{{.*}} @_ZGTt5calls(
// CHECK:         call {{.*}}ptr @_ZGTt6malloc(i64 {{.*}}8)
// CHECK:         call i32 @opaque(
// CHECK:         [[FOUND:%.*]] = call ptr @sp_tm_clone_or_irrevocable(ptr @_ZGTt9elsewhere, ptr @elsewhere)
// CHECK-NEXT:    call void [[FOUND]](ptr
// CHECK:         [[CLONE:%.*]] = call ptr @_ITM_getTMCloneOrIrrevocable(ptr %1)
// CHECK-NEXT:    call void [[CLONE]](ptr
// CHECK:         call void @_ITM_changeTransactionMode(i32 0)
// CHECK-NEXT:    atomicrmw

// CHECK-LABEL: define{{.*}} @_ZGTt9own_stack(
// CHECK:         call void @llvm.memcpy
// CHECK:         call void @_ITM_memcpyRnWt(ptr %0,
// CHECK:         call void @_ITM_memcpyRtWn(ptr {{.*}}, ptr %1, i64 32)
// CHECK-NOT:     @_ITM_RU
// CHECK:         ret i64
// CHECK:       declare extern_weak void @_ZGTt9elsewhere(

// SAID:          a call of 'elsewhere', which has no clone for transactions, makes the transaction irrevocable
// SAID:          an atomic access that writes makes the transaction irrevocable
