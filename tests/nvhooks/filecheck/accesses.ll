; RUN: optimizations=static-check
; RUN: optimizations= prefix=CALL
; RUN: optimizations=static-check hooks=is_nvm,pre_nvm_read,post_nvm_read prefix=READ
; Each kind of access gets its hooks, with its size, around it and under the check.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define void @store(ptr %p) {
; CHECK-LABEL: define void @store(
; CHECK:         %[[A:.*]] = ptrtoint ptr %p to i64
; CHECK-NEXT:    %[[B:.*]] = lshr i64 %[[A]], 40
; CHECK-NEXT:    %[[C:.*]] = icmp eq i64 %[[B]], 72
; CHECK-NEXT:    br i1 %[[C]]
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK:         store i32 7, ptr %p
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 4)
; CHECK-NOT:     @nvhooks_is_nvm
; CALL-LABEL:  define void @store(
; CALL:          %[[D:.*]] = call {{.*}}i1 @nvhooks_is_nvm(ptr %p)
; CALL-NEXT:     br i1 %[[D]]
; CALL:          call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CALL:          store i32 7, ptr %p
; CALL:          @nvhooks_is_nvm(ptr %p)
; CALL:          call void @nvhooks_post_nvm_write(ptr %p, i64 4)
; READ-LABEL:  define void @store(
; READ-NOT:      @nvhooks
; READ:          ret void
  store i32 7, ptr %p
  ret void
}

define i16 @load(ptr %p) {
; CHECK-LABEL: define i16 @load(
; CHECK-NOT:     nvhooks
; CHECK:         ret i16
; READ-LABEL:  define i16 @load(
; READ:          call void @nvhooks_pre_nvm_read(ptr %p, i64 2)
; READ:          load i16, ptr %p
; READ:          call void @nvhooks_post_nvm_read(ptr %p, i64 2)
  %v = load i16, ptr %p
  ret i16 %v
}

define void @volatile_store(ptr %p) {
; CHECK-LABEL: define void @volatile_store(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 8)
; CHECK:         store volatile i64 7, ptr %p
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 8)
  store volatile i64 7, ptr %p
  ret void
}

; Ten of its sixteen bytes are written.
define void @extended(ptr %p, x86_fp80 %v) {
; CHECK-LABEL: define void @extended(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 10)
  store x86_fp80 %v, ptr %p
  ret void
}

define void @odd_integer(ptr %p, i37 %v) {
; CHECK-LABEL: define void @odd_integer(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 5)
  store i37 %v, ptr %p
  ret void
}

define void @whole_struct(ptr %p, { i8, i64 } %v) {
; CHECK-LABEL: define void @whole_struct(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 16)
  store { i8, i64 } %v, ptr %p
  ret void
}

define void @vector(ptr %p, <8 x float> %v) {
; CHECK-LABEL: define void @vector(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 32)
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 32)
  store <8 x float> %v, ptr %p
  ret void
}

define i32 @update(ptr %p) {
; CHECK-LABEL: define i32 @update(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK:         atomicrmw add ptr %p
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 4)
; READ-LABEL:  define i32 @update(
; READ:          call void @nvhooks_pre_nvm_read(ptr %p, i64 4)
; READ:          atomicrmw add ptr %p
; READ:          call void @nvhooks_post_nvm_read(ptr %p, i64 4)
  %v = atomicrmw add ptr %p, i32 1 seq_cst
  ret i32 %v
}

define i1 @exchange(ptr %p, i64 %old, i64 %new) {
; CHECK-LABEL: define i1 @exchange(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 8)
; CHECK:         cmpxchg ptr %p
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 8)
  %pair = cmpxchg ptr %p, i64 %old, i64 %new acq_rel monotonic
  %done = extractvalue { i64, i1 } %pair, 1
  ret i1 %done
}

define void @atomic_store(ptr %p) {
; CHECK-LABEL: define void @atomic_store(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK:         store atomic i32 7, ptr %p release
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 4)
  store atomic i32 7, ptr %p release, align 4
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i32(ptr, ptr, i32, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @copy(ptr %to, ptr %from, i64 %n) {
; CHECK-LABEL: define void @copy(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %to, i64 %n)
; CHECK:         call void @llvm.memcpy
; CHECK:         call void @nvhooks_post_nvm_write(ptr %to, i64 %n)
; READ-LABEL:  define void @copy(
; READ:          call void @nvhooks_pre_nvm_read(ptr %from, i64 %n)
; READ:          call void @llvm.memcpy
; READ:          call void @nvhooks_post_nvm_read(ptr %from, i64 %n)
; READ-NOT:      ptr %to, i64 %n
; READ:          ret void
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  ret void
}

define void @move(ptr %to, ptr %from, i32 %n) {
; CHECK-LABEL: define void @move(
; CHECK:         %[[N:.*]] = zext i32 %n to i64
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %to, i64 %[[N]])
; CHECK:         call void @llvm.memmove
; CHECK:         call void @nvhooks_post_nvm_write(ptr %to, i64 %[[N]])
  call void @llvm.memmove.p0.p0.i32(ptr %to, ptr %from, i32 %n, i1 false)
  ret void
}

define void @set(ptr %p) {
; CHECK-LABEL: define void @set(
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 100)
; CHECK:         call void @llvm.memset
; CHECK:         call void @nvhooks_post_nvm_write(ptr %p, i64 100)
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 100, i1 false)
  ret void
}

define void @set_nothing(ptr %p) {
; CHECK-LABEL: define void @set_nothing(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 0, i1 false)
  ret void
}

declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, i32, <4 x i1>)
declare void @llvm.masked.scatter.v2i64.v2p0(<2 x i64>, <2 x ptr>, i32, <2 x i1>)

; A hook for a lane only where its bit of the mask is set.
define void @masked(<4 x i32> %v, ptr %p, <4 x i1> %mask) {
; CHECK-LABEL: define void @masked(
; CHECK-DAG:     %[[M0:.*]] = extractelement <4 x i1> %mask, {{i32|i64}} 0
; CHECK-DAG:     %[[M3:.*]] = extractelement <4 x i1> %mask, {{i32|i64}} 3
; CHECK:         and i1 {{.*}}%[[M0]]
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %p, i64 4)
; CHECK:         getelementptr i8, ptr %p, i64 12
; CHECK:         and i1 {{.*}}%[[M3]]
; CHECK:         call void @nvhooks_pre_nvm_write({{.*}}, i64 4)
; CHECK:         call void @llvm.masked.store
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %v, ptr %p, i32 4, <4 x i1> %mask)
  ret void
}

define void @masked_all_but_one(<4 x i32> %v, ptr %p) {
; CHECK-LABEL: define void @masked_all_but_one(
; CHECK-COUNT-3: call void @nvhooks_pre_nvm_write
; CHECK-NOT:     call void @nvhooks_pre_nvm_write
; CHECK:         call void @llvm.masked.store
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %v, ptr %p, i32 4, <4 x i1> <i1 1, i1 1, i1 0, i1 1>)
  ret void
}

define void @scatter(<2 x i64> %v, <2 x ptr> %p, <2 x i1> %mask) {
; CHECK-LABEL: define void @scatter(
; CHECK-DAG:     %[[P0:.*]] = extractelement <2 x ptr> %p, {{i32|i64}} 0
; CHECK-DAG:     %[[P1:.*]] = extractelement <2 x ptr> %p, {{i32|i64}} 1
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %[[P0]], i64 8)
; CHECK:         call void @nvhooks_pre_nvm_write(ptr %[[P1]], i64 8)
; CHECK:         call void @llvm.masked.scatter
; CHECK:         call void @nvhooks_post_nvm_write(ptr %[[P0]], i64 8)
; CHECK:         call void @nvhooks_post_nvm_write(ptr %[[P1]], i64 8)
  call void @llvm.masked.scatter.v2i64.v2p0(<2 x i64> %v, <2 x ptr> %p, i32 8, <2 x i1> %mask)
  ret void
}

; Other address spaces are the thread pointer's segments.
define void @segment(ptr addrspace(257) %p) {
; CHECK-LABEL: define void @segment(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  store i32 1, ptr addrspace(257) %p
  ret void
}
