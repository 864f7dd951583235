// RUN: optimizations=all level=-O0
// Functions that are not to be optimised are instrumented anyway.
#include "recorder.h"

// CHECK:       define{{.*}} @plain({{.*}}) #[[NONE:[0-9]+]]
// CHECK:         call void @nvhooks_pre_nvm_write(
// CHECK:         call void @nvhooks_post_nvm_write(
void plain(u32 *p) { *p = 1; }

// CHECK:       attributes #[[NONE]] = { {{.*}}optnone
