// RUN: optimizations=static-check level=-O1
// RUN: optimizations=all level=-O1 prefix=ALL
// A hook behind a call that may throw stands where it returns normally; hooks are not moved over one that may throw.
#include "recorder.h"

void may_throw(u32 *p);
extern "C" int described(u32 *p) __attribute__((annotate("nvm_write:arg0:4")));
void use(int);

// CHECK-LABEL: define{{.*}} @_Z6caughtPj(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr %0, i64 4)
// CHECK:         invoke {{.*}}i32 @described(
// CHECK-NEXT:      to label %[[NORMAL:[0-9a-z._]+]] unwind label %[[PAD:[0-9a-z._]+]]
// CHECK:       [[NORMAL]]:
// CHECK:         lshr
// CHECK:         call void @nvhooks_post_nvm_write(ptr %0, i64 4)
void caught(u32 *p)
{
    try {
        use(described(p));
    } catch (int) {
        use(0);
    }
}

// ALL-LABEL: define{{.*}} @_Z7stoppedPjS_(
// ALL:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 4)
// ALL:         call void @_Z9may_throwPj(
// ALL:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 4)
void stopped(u32 *p, u32 *q)
{
    p[0] = 1;
    may_throw(q);
    p[1] = 2;
}
