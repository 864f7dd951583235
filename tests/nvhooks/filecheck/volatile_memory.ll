; RUN: optimizations=static-check
; RUN: optimizations=
; What provably is no durable memory has no hook: stack, constants, thread-local and global variables, memory of malloc.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@global = global i32 0
@thread = thread_local global i32 0
@constant = private constant [4 x i8] c"abc\00"

declare void @escape(ptr)
declare noalias ptr @malloc(i64)
declare ptr @llvm.threadlocal.address.p0(ptr)

define void @stack(i64 %i) {
; CHECK-LABEL: define void @stack(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  %a = alloca [8 x i32]
  %p = getelementptr [8 x i32], ptr %a, i64 0, i64 %i
  store i32 1, ptr %p
  ret void
}

define void @escaped_stack() {
; CHECK-LABEL: define void @escaped_stack(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  %a = alloca i32
  call void @escape(ptr %a)
  store i32 1, ptr %a
  ret void
}

define void @by_value(ptr byval([4 x i64]) %p) {
; CHECK-LABEL: define void @by_value(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  store i64 1, ptr %p
  ret void
}

define void @globals() {
; CHECK-LABEL: define void @globals(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  store i32 1, ptr @global
  %t = call ptr @llvm.threadlocal.address.p0(ptr @thread)
  store i32 1, ptr %t
  ret void
}

define void @heap() {
; CHECK-LABEL: define void @heap(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  %p = call ptr @malloc(i64 16)
  store i32 1, ptr %p
  ret void
}

define void @one_of_two_stacks(i1 %c) {
; CHECK-LABEL: define void @one_of_two_stacks(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  %a = alloca i32
  %b = alloca i32
  %p = select i1 %c, ptr %a, ptr %b
  store i32 1, ptr %p
  ret void
}

; The rest may be durable.
define void @stack_or_not(i1 %c, ptr %q) {
; CHECK-LABEL: define void @stack_or_not(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 4)
  %a = alloca i32
  %p = select i1 %c, ptr %a, ptr %q
  store i32 1, ptr %p
  ret void
}

define void @through_the_stack(ptr %where) {
; CHECK-LABEL: define void @through_the_stack(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
  %a = alloca ptr
  call void @escape(ptr %a)
  %p = load ptr, ptr %a
  store i32 1, ptr %p
  ret void
}
