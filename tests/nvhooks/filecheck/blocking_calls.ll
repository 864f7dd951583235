; RUN: optimizations=static-check hooks=is_nvm,blocking_call blocking=join,sleep,run
; Calls that may block, for `stillpoint lint`: before the call, with its name and its first two arguments.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; CHECK: [[JOIN:@[0-9.]+]] = private unnamed_addr constant [5 x i8] c"join\00"
; CHECK: [[SLEEP:@[0-9.]+]] = private unnamed_addr constant [6 x i8] c"sleep\00"

declare i32 @join(i64, ptr)
declare i32 @sleep(i32)
declare i32 @other(i32)
declare void @run(double)

define i32 @two_arguments(i64 %thread, ptr %result) {
; CHECK-LABEL: define i32 @two_arguments(
; CHECK:         [[SECOND:%.*]] = ptrtoint ptr %result to i64
; CHECK:         call void @nvhooks_blocking_call(ptr [[JOIN]], i64 %thread, i64 [[SECOND]])
; CHECK-NEXT:    call i32 @join(
  %done = call i32 @join(i64 %thread, ptr %result)
  ret i32 %done
}

define i32 @one_argument(i32 %seconds) {
; CHECK-LABEL: define i32 @one_argument(
; CHECK:         [[FIRST:%.*]] = sext i32 %seconds to i64
; CHECK:         call void @nvhooks_blocking_call(ptr [[SLEEP]], i64 [[FIRST]], i64 0)
; CHECK:         call i32 @sleep(
  %left = call i32 @sleep(i32 %seconds)
  ret i32 %left
}

define void @no_number() {
; CHECK-LABEL: define void @no_number(
; CHECK:         call void @nvhooks_blocking_call(ptr {{.*}}, i64 0, i64 0)
; CHECK-NEXT:    call void @run(
  call void @run(double 1.0)
  ret void
}

define i32 @not_listed() {
; CHECK-LABEL: define i32 @not_listed(
; CHECK-NOT:     nvhooks
; CHECK:         ret i32
  %result = call i32 @other(i32 1)
  ret i32 %result
}
