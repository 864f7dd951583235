// RUN: optimizations=static-check hooks=post_nvm_write marks=cards
// Marks of cards in line: the store, then the test, then the mark, and then the coarse card's; no call, but for long and unknown sizes.
#include "recorder.h"

void *memset(void *, int, u64);

// A store that is aligned to its size lies in one card.
// CHECK-LABEL: define{{.*}} @aligned(
// CHECK-NOT:     @nvhooks
// CHECK:         store i64 %1, ptr %0
// CHECK:         lshr i64 {{.*}}, 40
// CHECK:         icmp eq i64 {{.*}}, 72
// CHECK:         lshr i64 {{.*}}, 6
// CHECK:         %[[CARD:[a-z0-9.]+]] = inttoptr i64
// CHECK:         %[[SEEN:[a-z0-9.]+]] = load atomic i8, ptr %[[CARD]] monotonic
// CHECK:         and i8 %[[SEEN]], 1
// CHECK:         store atomic i8 1, ptr %[[CARD]] monotonic
// CHECK:         lshr i64 {{.*}}, 9
// CHECK:         load atomic i8, ptr %[[COARSE:[a-z0-9.]+]] monotonic
// CHECK:         store atomic i8 1, ptr %[[COARSE]] release
// CHECK-NOT:     store atomic
// CHECK-NOT:     @nvhooks
// CHECK:         ret void
void aligned(u64 *p, u64 x) { *p = x; }

struct __attribute__((packed)) tight { u8 a; u64 b; };

// CHECK-LABEL: define{{.*}} @straddling(
// CHECK:         store i64
// CHECK-COUNT-2: load atomic i8
// CHECK-COUNT-2: store atomic i8 1, ptr {{.*}} monotonic
// CHECK-COUNT-2: store atomic i8 1, ptr {{.*}} release
// CHECK-NOT:     @nvhooks
// CHECK:         ret void
void straddling(struct tight *p, u64 x) { p->b = x; }

// CHECK-LABEL: define{{.*}} @longer_than_a_card(
// CHECK:         call void @llvm.memset
// CHECK:         call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 200)
// CHECK:         ret void
void longer_than_a_card(u8 *p) { memset(p, 0, 200); }

// CHECK-LABEL: define{{.*}} @unknown_length(
// CHECK:         call void @llvm.memset
// CHECK-DAG:     call void @nvhooks_post_nvm_write(ptr {{.*}}, i64 %1)
// CHECK-DAG:     load atomic i8
// CHECK:         }
void unknown_length(u8 *p, u64 n) { memset(p, 0, n); }

// CHECK-NOT:   declare {{.*}}@nvhooks_{{is_nvm|pre}}
