// RUN: optimizations=static-check level=-O1
// RUN: optimizations=static-check level=-O0 prefix=O0
// Calls into precompiled code get hooks by what is known of the callee: built-in tables, the layer's files, attributes.
#include "recorder.h"
#include "stillpoint/nvhooks.h"

typedef struct stream FILE;
char *strcpy(char *, const char *);
char *strcat(char *, const char *);
int snprintf(char *, u64, const char *, ...);
int sprintf(char *, const char *, ...);
i64 read(int, void *, u64);
i64 getline(char **, u64 *, FILE *);
void qsort(void *, u64, u64, int (*)(const void *, const void *));
u64 strlen(const char *);
int sscanf(const char *, const char *, ...);
void *memcpy(void *, const void *, u64);
int unknown(char *);

// O0-LABEL:    define{{.*}} @copy(
// O0:            call {{.*}}@strlen
// O0:            call void @nvhooks_pre_nvm_write(ptr
// O0:            call ptr @strcpy
// O0:            call void @nvhooks_post_nvm_write(ptr
// CHECK-LABEL: define{{.*}} @copy(
// CHECK:         br i1 {{.*}}
// CHECK:         %[[LENGTH:[0-9a-z]+]] = {{.*}}call i64 @strlen(ptr {{.*}})
// CHECK:         %[[BYTES:[0-9a-z]+]] = add i64 %[[LENGTH]], 1
// CHECK:         phi i64
// CHECK:         call void @nvhooks_pre_nvm_write(ptr %0, i64
// CHECK:         call ptr @strcpy
// CHECK:         call void @nvhooks_post_nvm_write(ptr %0, i64
void copy(char *to, const char *from) { strcpy(to, from); }

// The write begins after what is there, which must be asked before the call.
// CHECK-LABEL: define{{.*}} @append(
// CHECK-COUNT-2: call i64 @strlen
// CHECK:         call void @nvhooks_pre_nvm_write(ptr
// CHECK:         call ptr @strcat
// CHECK-NOT:     call i64 @strlen
// CHECK:         call void @nvhooks_post_nvm_write(ptr
void append(char *to, const char *from) { strcat(to, from); }

// CHECK-LABEL: define{{.*}} @print(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr %0, i64 %
// CHECK:         %[[RESULT:[0-9a-z]+]] = {{.*}}call i32 {{.*}}@snprintf(ptr {{.*}}%0
// CHECK:         call i64 @llvm.umin.i64(
// CHECK:         call void @nvhooks_post_nvm_write(ptr %0, i64
void print(char *to, u64 size, int x) { snprintf(to, size, "%d", x); }

// CHECK-LABEL: define{{.*}} @print_unbounded(
// CHECK:         call i32 {{.*}}@snprintf(ptr null, i64 0, ptr {{.*}}, i32 %1)
// CHECK:         call void @nvhooks_pre_nvm_write(ptr %0, i64
// CHECK:         call i32 {{.*}}@sprintf(ptr
// CHECK:         call void @nvhooks_post_nvm_write(ptr %0, i64
void print_unbounded(char *to, int x) { sprintf(to, "<%d>", x); }

// CHECK-LABEL: define{{.*}} @receive(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr %1, i64 %
// CHECK:         %[[GOT:[0-9a-z]+]] = {{.*}}call i64 @read(
// CHECK:         call i64 @llvm.smax.i64(i64 %[[GOT]], i64 0)
// CHECK:         call void @nvhooks_post_nvm_write(ptr %1, i64
i64 receive(int fd, void *to, u64 n) { return read(fd, to, n); }

// CHECK-LABEL: define{{.*}} @sort(
// CHECK:         %[[ALL:[0-9a-z]+]] = {{mul|shl}} i64
// CHECK:         call void @nvhooks_pre_nvm_write(ptr %0, i64 %[[ALL]])
// CHECK:         call void @qsort
// CHECK:         call void @nvhooks_post_nvm_write(ptr %0, i64 %[[ALL]])
void sort(u32 *p, u64 n, int (*compare)(const void *, const void *)) { qsort(p, n, 4, compare); }

// A store of the format's literal: four bytes, and nine for the bounded string.
// CHECK-LABEL: define{{.*}} @scan(
// CHECK-DAG:     call void @nvhooks_pre_nvm_write(ptr %1, i64 4)
// CHECK-DAG:     call void @nvhooks_pre_nvm_write(ptr %2, i64 9)
// CHECK:         @{{(__isoc99_)?}}sscanf
void scan(const char *from, int *number, char *name) { sscanf(from, "%d %8s %*d", number, name); }

// The buffer, where the pointer that is handed in points.
// CHECK-LABEL: define{{.*}} @line(
// CHECK:         load ptr, ptr
// CHECK:         call void @nvhooks_pre_nvm_write(ptr
// CHECK:         call i64 @getline
void line(char **buffer, u64 *size, FILE *f) { getline(buffer, size, f); }

// CHECK-LABEL: define{{.*}} @by_the_layers_file(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr %0, i64 %
// CHECK:         call i64 @described_fill
void by_the_layers_file(u64 *to) { described_fill(to, 3, 1); }

// CHECK-LABEL: define{{.*}} @by_attribute(
// CHECK:         %[[BEHIND:[0-9a-z]+]] = getelementptr {{.*}}ptr %0, i64 8
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64
// CHECK:         call void @attributed_fill
void by_attribute(u8 *to) { attributed_fill(1, to, 3); }

nvm_write(arg1, return:arg2) nvm_read(arg0, min(arg2, 8)) i64 macros(const char *from, void *to, u64 room);
// CHECK-LABEL: define{{.*}} @by_macro(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr %1, i64 %
// CHECK:         call i64 @macros
// CHECK:         call void @nvhooks_post_nvm_write(ptr %1, i64 %
void by_macro(const char *from, void *to, u64 room) { macros(from, to, room); }

// Nothing is written that could be durable.
// CHECK-LABEL: define{{.*}} @to_the_stack(
// CHECK-NOT:     @nvhooks
// CHECK:         ret
u64 to_the_stack(int fd)
{
    char room[16];
    read(fd, room, sizeof room);
    return strlen(room);
}

// CHECK-LABEL: define{{.*}} @harmless(
// CHECK-NOT:     @nvhooks
// CHECK:         ret
u64 harmless(const char *text) { return strlen(text); }

// CHECK-LABEL: define{{.*}} @not_described(
// CHECK-NOT:     @nvhooks
// CHECK:         ret
int not_described(char *text) { return unknown(text); }

// A function of this module that has a name from the table is instrumented itself.
// CHECK-LABEL: define{{.*}} @swab(
// CHECK:         call void @nvhooks_pre_nvm_write(ptr {{.*}}, i64 1)
__attribute__((noinline)) void swab(const char *from, char *to, i64 n) { to[n] = from[0]; }
// CHECK-LABEL: define{{.*}} @calls_its_own(
// CHECK-NOT:     @nvhooks
// CHECK:         ret
void calls_its_own(const char *from, char *to) { swab(from, to, 4); }
