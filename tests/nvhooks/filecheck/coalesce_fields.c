// RUN: optimizations=static-check,coalesce-fields
// RUN: optimizations=static-check prefix=EACH
// Neighbouring stores get one hook before the first of them and one after the last; bytes between them that are not written
// stay out of it, and so do stores on the other side of what may end a FASE.
#include "recorder.h"

struct node { u64 key; u32 a; u32 b; struct node *next; u8 gap[64]; u64 far; };
void unknown(void);

// CHECK-LABEL: define{{.*}} @whole(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 24)
// CHECK-NOT:     @nvhooks_pre_nvm_write
// CHECK:         store
// CHECK:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 24)
// CHECK-NOT:     @nvhooks
// CHECK:         ret void
// EACH-LABEL:  define{{.*}} @whole(
// EACH-COUNT-4:  call void @nvhooks_post_nvm_write
// EACH-NOT:      @nvhooks_post_nvm_write
// EACH:          ret void
void whole(struct node *n, u64 x, u32 y, struct node *next)
{
    n->b = y;
    n->next = next;
    n->key = x;
    n->a = y + 1;
}

// CHECK-LABEL: define{{.*}} @with_a_gap(
// CHECK-DAG:     call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 8)
// CHECK-DAG:     call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 8)
// CHECK-NOT:     i64 96
// CHECK:         ret void
void with_a_gap(struct node *n, u64 x)
{
    n->key = x;
    n->far = x + 1;
}

// CHECK-LABEL: define{{.*}} @other_side(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 8)
// CHECK:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 8)
// CHECK:         call void @unknown()
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 4)
// CHECK:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 4)
// CHECK:         ret void
void other_side(struct node *n, u64 x)
{
    n->key = x;
    unknown();
    n->a = (u32)x;
}

// opaque() is in the layer's keeps-fase.
// CHECK-LABEL: define{{.*}} @across_a_known_call(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 12)
// CHECK:         call {{.*}}@opaque(
// CHECK:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 12)
// CHECK-NOT:     @nvhooks
// CHECK:         ret void
void across_a_known_call(struct node *n, u64 x)
{
    n->key = x;
    n->a = opaque((u32)x);
}

// A store that is written on one way only is not hooked on the other.
// CHECK-LABEL: define{{.*}} @on_one_way(
// CHECK-NOT:     @nvhooks_{{pre|post}}_nvm_write(ptr {{.*}}, i64 12)
// CHECK:         ret void
void on_one_way(struct node *n, u64 x)
{
    n->key = x;
    if (opaque((u32)x) & 1) {
        n->a = 3;
    }
}

// Two objects that may be the same stay two.
// CHECK-LABEL: define{{.*}} @two_objects(
// CHECK-COUNT-2: call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 8)
// CHECK:         ret void
void two_objects(struct node *n, struct node *m, u64 x)
{
    n->key = x;
    m->key = x;
}
