; RUN: optimizations=static-check
; What link-time optimisation passes through the plugin once more is left as it is.

define void @store(ptr %p) {
; CHECK-LABEL: define void @store(
; CHECK-NOT:     nvhooks
; CHECK:         ret void
  store i32 7, ptr %p
  ret void
}

!stillpoint.nvhooks = !{}
