// RUN: optimizations=static-check hooks=gathered level=-O2
// RUN: optimizations=static-check,coalesce-fields hooks=gathered level=-O2 prefix=FIELDS
// Stores of a block are told of before the first of them, and waited for once. A store whose address is not known there stays alone, and
// so does what stands on the other side of a call that may end a FASE.
#include "recorder.h"

struct leaf { u64 count; u64 keys[31]; struct leaf *slots[32]; };
void unknown(void);

// CHECK-LABEL: define{{.*}} @insert(
// CHECK-COUNT-5: call void @nvhooks_pre_nvm_write_gathered(
// CHECK-NOT:     @nvhooks
// CHECK-NOT:     llvm.memmove
// CHECK:         call void @nvhooks_writes_gathered()
// CHECK-NOT:     @nvhooks
// CHECK:         call void @llvm.memmove
// CHECK-NOT:     @nvhooks
// CHECK:         call void @llvm.memmove
// CHECK-NOT:     @nvhooks
// CHECK:         ret void
// FIELDS-LABEL:  define{{.*}} @insert(
// FIELDS-COUNT-5: call void @nvhooks_pre_nvm_write_gathered(
// FIELDS:        call void @nvhooks_writes_gathered()
// FIELDS:        call void @llvm.memmove
// FIELDS:        ret void
void insert(struct leaf *leaf, u32 at, u64 key, struct leaf *slot)
{
    __builtin_memmove(&leaf->keys[at + 1], &leaf->keys[at], (leaf->count - at) * sizeof leaf->keys[0]);
    __builtin_memmove(&leaf->slots[at + 1], &leaf->slots[at], (leaf->count - at) * sizeof leaf->slots[0]);
    leaf->keys[at] = key;
    leaf->slots[at] = slot;
    leaf->count += 1;
}

// CHECK-LABEL: define{{.*}} @alone(
// CHECK:         call void @nvhooks_pre_nvm_write(
// CHECK-NOT:     @nvhooks
// CHECK:         store
// CHECK-NOT:     @nvhooks
// CHECK:         ret void
void alone(struct leaf *leaf) { leaf->count = 0; }

// The second address is loaded after the first store, which may have changed it.
// CHECK-LABEL: define{{.*}} @unknown_address(
// CHECK:         call void @nvhooks_pre_nvm_write(
// CHECK:         store ptr null
// CHECK:         call void @nvhooks_pre_nvm_write(
// CHECK:         store i64 1
// CHECK-NOT:     @nvhooks
// CHECK:         ret void
void unknown_address(struct leaf **first, struct leaf **second)
{
    *first = 0;
    (*second)->count = 1;
}

// CHECK-LABEL: define{{.*}} @other_side(
// CHECK:         call void @nvhooks_pre_nvm_write(
// CHECK:         call void @unknown()
// CHECK:         call void @nvhooks_pre_nvm_write(
// CHECK-NOT:     @nvhooks
// CHECK:         ret void
void other_side(struct leaf *leaf, struct leaf *other)
{
    leaf->count = 1;
    unknown();
    other->count = 2;
}

// Two objects: a check of both comes before the wait.
// CHECK-LABEL: define{{.*}} @two_objects(
// CHECK:         call void @nvhooks_pre_nvm_write_gathered(
// CHECK:         call void @nvhooks_pre_nvm_write_gathered(
// CHECK:         call void @nvhooks_writes_gathered()
// CHECK:         store i64 1
// CHECK:         store i64 2
// CHECK:         ret void
void two_objects(struct leaf *leaf, struct leaf *other)
{
    leaf->count = 1;
    other->count = 2;
}
