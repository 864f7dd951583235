// RUN: optimizations=static-check level=-O1
// RUN: optimizations=static-check level=-O0
// A described function that is called through a pointer is wrapped; calling it by name stays as it is.
#include "recorder.h"

void *memcpy(void *, const void *, u64);
u64 strlen(const char *);
typedef void *copier(void *, const void *, u64);

// CHECK-DAG:   @handler = {{.*}} ptr @[[WRAPPER:nvhooks.through_pointer.memcpy[a-z.]*]]
// CHECK-DAG:   @measure = {{.*}} ptr @strlen
copier *handler = memcpy;
u64 (*measure)(const char *) = strlen;

// CHECK-LABEL: define{{.*}} @hand_over(
// CHECK:         store ptr @[[WRAPPER]]
void hand_over(copier **to) { *to = memcpy; }

// CHECK-LABEL: define{{.*}} @by_name(
// CHECK-NOT:     @[[WRAPPER]]
// CHECK:         {{@memcpy|@llvm.memcpy}}
void by_name(void *to, const void *from, u64 n) { memcpy(to, from, n); }

// CHECK:       define linkonce_odr hidden {{.*}}@[[WRAPPER]](
// CHECK:         call void @nvhooks_pre_nvm_write(
// CHECK:         call {{.*}}@memcpy(
// CHECK:         call void @nvhooks_post_nvm_write(
