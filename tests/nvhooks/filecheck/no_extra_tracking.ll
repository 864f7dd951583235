; RUN: optimizations=static-check,no-extra-tracking
; RUN: optimizations=static-check,no-extra-tracking track-new=no prefix=NEW
; RUN: optimizations=static-check,no-extra-tracking track-new=yes prefix=OLD
; One hook before the first write of a place, one after the last; new blocks need none before.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @unknown()
declare ptr @recorder_allocate(i64)
declare i32 @opaque(i32)

define void @twice(ptr %p) {
; CHECK-LABEL: define void @twice(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK-NOT:     @nvhooks
; CHECK:         store volatile i32 1
; CHECK-NOT:     @nvhooks
; CHECK:         store volatile i32 2
; CHECK-NOT:     @nvhooks_pre
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 4)
; CHECK-NOT:     @nvhooks
; CHECK:         ret void
  store volatile i32 1, ptr %p
  store volatile i32 2, ptr %p
  ret void
}

define void @part_of_it(ptr %p) {
; CHECK-LABEL: define void @part_of_it(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 8)
; CHECK-NOT:     @nvhooks_pre
; CHECK:         ret void
  store volatile i64 1, ptr %p
  %q = getelementptr i8, ptr %p, i64 4
  store volatile i32 2, ptr %q
  ret void
}

; The first covers less than the second: both hooks stay.
define void @more_than_it(ptr %p) {
; CHECK-LABEL: define void @more_than_it(
; CHECK-DAG:     call void @nvhooks_pre_nvm_write(ptr %p, i64 {{4|8}})
; CHECK:         store volatile i32
; CHECK:         ret void
  store volatile i32 1, ptr %p
  store volatile i64 2, ptr %p
  ret void
}

define void @boundary_between(ptr %p) {
; CHECK-LABEL: define void @boundary_between(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 4)
; CHECK:         call void @unknown
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 4)
  store i32 1, ptr %p
  call void @unknown()
  store i32 2, ptr %p
  ret void
}

; Only one way comes by the first store: the second needs its hook.
define void @not_dominated(ptr %p, i1 %c) {
; CHECK-LABEL: define void @not_dominated(
; CHECK-COUNT-2: call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK:         ret void
  br i1 %c, label %then, label %end
then:
  store i32 1, ptr %p
  br label %end
end:
  store i32 2, ptr %p
  ret void
}

define void @dominated(ptr %p, i1 %c) {
; CHECK-LABEL: define void @dominated(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK-NOT:     call void @nvhooks_pre_nvm_write
; CHECK:         ret void
  store i32 1, ptr %p
  br i1 %c, label %then, label %end
then:
  store i32 2, ptr %p
  br label %end
end:
  ret void
}

; A boundary on one way to it.
define void @dominated_but(ptr %p, i1 %c) {
; CHECK-LABEL: define void @dominated_but(
; CHECK-COUNT-2: call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK:         ret void
  store i32 1, ptr %p
  br i1 %c, label %then, label %end
then:
  call void @unknown()
  br label %end
end:
  store i32 2, ptr %p
  ret void
}

define ptr @new_block(i64 %x) {
; NEW-LABEL: define ptr @new_block(
; NEW-NOT:     @nvhooks_pre_nvm_write
; NEW:         call void @nvhooks_post_nvm_write(ptr {{.*}}%p, i64
; NEW-NOT:     @nvhooks_pre_nvm_write
; NEW:         ret ptr
; OLD-LABEL: define ptr @new_block(
; OLD:         @nvhooks_pre_nvm_write
; OLD:         ret ptr
  %p = call ptr @recorder_allocate(i64 32)
  store i64 %x, ptr %p
  %q = getelementptr i8, ptr %p, i64 16
  store i64 %x, ptr %q
  ret ptr %p
}

; In another FASE it is no longer new.
define void @new_no_more(i64 %x) {
; NEW-LABEL: define void @new_no_more(
; NEW:         call void @unknown()
; NEW:         call void @nvhooks_pre_nvm_write(ptr %p, i64 8)
; NEW:         ret void
  %p = call ptr @recorder_allocate(i64 32)
  call void @unknown()
  store i64 %x, ptr %p
  ret void
}

; One of two: only one is new.
define void @new_or_old(ptr %old, i1 %c, i64 %x) {
; NEW-LABEL: define void @new_or_old(
; NEW:         call void @nvhooks_pre_nvm_write(ptr %either, i64 8)
; NEW:         ret void
  %p = call ptr @recorder_allocate(i64 32)
  %either = select i1 %c, ptr %p, ptr %old
  store i64 %x, ptr %either
  ret void
}
