; RUN: optimizations=static-check hooks=is_nvm,pointer_stored
; Pointers that are stored in durable memory, for `stillpoint lint`: after the store, with the value.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

define void @pointer(ptr %p, ptr %value) {
; CHECK-LABEL: define void @pointer(
; CHECK:         store ptr %value, ptr %p
; CHECK:         call void @nvhooks_pointer_stored(ptr %p, ptr %value)
  store ptr %value, ptr %p
  ret void
}

define void @two(ptr %p, <2 x ptr> %value) {
; CHECK-LABEL: define void @two(
; CHECK:         store <2 x ptr> %value, ptr %p
; CHECK:         call void @nvhooks_pointer_stored(ptr %p, ptr %{{.*}})
; CHECK:         getelementptr i8, ptr %p, i64 8
; CHECK:         call void @nvhooks_pointer_stored(
  store <2 x ptr> %value, ptr %p
  ret void
}

define void @null(ptr %p) {
; CHECK-LABEL: define void @null(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  store ptr null, ptr %p
  ret void
}

define void @number(ptr %p, i64 %value) {
; CHECK-LABEL: define void @number(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  store i64 %value, ptr %p
  ret void
}
