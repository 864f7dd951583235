; RUN: optimizations=static-check
; A shim that is compiled with the plugin: its hooks are left as they are, since they would call themselves; what they call is not.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define void @nvhooks_post_nvm_write(ptr %p, i64 %n) {
; CHECK-LABEL: define void @nvhooks_post_nvm_write(
; CHECK-NEXT:    store i64 %n, ptr %p
; CHECK-NEXT:    ret void
  store i64 %n, ptr %p
  ret void
}

define void @record(ptr %p) {
; CHECK-LABEL: define void @record(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 1)
  store i8 1, ptr %p
  ret void
}
