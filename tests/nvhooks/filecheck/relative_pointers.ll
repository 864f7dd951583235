; RUN: optimizations= hooks=is_nvm,to_absolute_ptr,pre_nvm_write,post_nvm_write
; Relative pointers become addresses before the access, and only where they are durable.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @store(ptr %p) {
; CHECK-LABEL: define void @store(
; CHECK:         %[[D:.*]] = call {{.*}}i1 @nvhooks_is_nvm(ptr %p)
; CHECK-NEXT:    br i1 %[[D]]
; CHECK:         call ptr @nvhooks_to_absolute_ptr(i64
; CHECK:         %[[ABSOLUTE:.*]] = getelementptr i8, ptr %p, i64 %absolute.distance
; CHECK:         call void @nvhooks_pre_nvm_write(ptr
; CHECK-NOT:     store i32 7, ptr %p,
; CHECK:         store i32 7, ptr %{{.*}}
; CHECK:         call void @nvhooks_post_nvm_write(ptr
  store i32 7, ptr %p
  ret void
}

define i32 @load(ptr %p) {
; CHECK-LABEL: define i32 @load(
; CHECK:         call ptr @nvhooks_to_absolute_ptr(i64
; CHECK-NOT:     load i32, ptr %p,
; CHECK:         ret i32
  %v = load i32, ptr %p
  ret i32 %v
}

define void @copy(ptr %to, ptr %from) {
; CHECK-LABEL: define void @copy(
; CHECK-COUNT-2: call ptr @nvhooks_to_absolute_ptr(i64
; CHECK-NOT:     @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from
; CHECK:         ret void
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 8, i1 false)
  ret void
}

define void @stack(i32 %v) {
; CHECK-LABEL: define void @stack(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  %a = alloca i32
  store i32 %v, ptr %a
  ret void
}
