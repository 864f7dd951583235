#include "itm/registers.hpp"

// _ITM_beginTransaction(properties, …): keeps the registers in its frame and lets stillpoint_itm_begin(properties, registers) copy them and
// choose the actions. The frame is gone when the beginning returns again; the caller's is not, since a transaction ends in the function
// that begins it.

#if defined(__x86_64__)
asm(R"(
    .text
    .p2align 4
    .globl _ITM_beginTransaction
    .type _ITM_beginTransaction, @function
_ITM_beginTransaction:
    .cfi_startproc
    endbr64
    leaq 8(%rsp), %rax
    movq (%rsp), %rdx
    subq $72, %rsp
    .cfi_adjust_cfa_offset 72
    movq %rax, 0(%rsp)
    movq %rdx, 8(%rsp)
    movq %rbx, 16(%rsp)
    movq %rbp, 24(%rsp)
    movq %r12, 32(%rsp)
    movq %r13, 40(%rsp)
    movq %r14, 48(%rsp)
    movq %r15, 56(%rsp)
    movq %rsp, %rsi
    call stillpoint_itm_begin
    addq $72, %rsp
    .cfi_adjust_cfa_offset -72
    ret
    .cfi_endproc
    .size _ITM_beginTransaction, . - _ITM_beginTransaction

    .p2align 4
    .globl stillpoint_itm_return_again
    .hidden stillpoint_itm_return_again
    .type stillpoint_itm_return_again, @function
stillpoint_itm_return_again:
    .cfi_startproc
    movl %edi, %eax
    movq 8(%rsi), %rdx
    movq 16(%rsi), %rbx
    movq 24(%rsi), %rbp
    movq 32(%rsi), %r12
    movq 40(%rsi), %r13
    movq 48(%rsi), %r14
    movq 56(%rsi), %r15
    movq 0(%rsi), %rsp
    jmp *%rdx
    .cfi_endproc
    .size stillpoint_itm_return_again, . - stillpoint_itm_return_again
)");
#elif defined(__aarch64__)
// hint 34 is `bti c`: the function may be called through a pointer.
asm(R"(
    .text
    .p2align 4
    .globl _ITM_beginTransaction
    .type _ITM_beginTransaction, %function
_ITM_beginTransaction:
    .cfi_startproc
    hint 34
    mov x9, sp
    sub sp, sp, #192
    .cfi_adjust_cfa_offset 192
    stp x9, x30, [sp, #0]
    .cfi_rel_offset x30, 8
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    str x29, [sp, #96]
    stp d8, d9, [sp, #112]
    stp d10, d11, [sp, #128]
    stp d12, d13, [sp, #144]
    stp d14, d15, [sp, #160]
    mov x1, sp
    bl stillpoint_itm_begin
    ldr x30, [sp, #8]
    .cfi_restore x30
    add sp, sp, #192
    .cfi_adjust_cfa_offset -192
    ret
    .cfi_endproc
    .size _ITM_beginTransaction, . - _ITM_beginTransaction

    .p2align 4
    .globl stillpoint_itm_return_again
    .hidden stillpoint_itm_return_again
    .type stillpoint_itm_return_again, %function
stillpoint_itm_return_again:
    .cfi_startproc
    ldp x9, x30, [x1, #0]
    ldp x19, x20, [x1, #16]
    ldp x21, x22, [x1, #32]
    ldp x23, x24, [x1, #48]
    ldp x25, x26, [x1, #64]
    ldp x27, x28, [x1, #80]
    ldr x29, [x1, #96]
    ldp d8, d9, [x1, #112]
    ldp d10, d11, [x1, #128]
    ldp d12, d13, [x1, #144]
    ldp d14, d15, [x1, #160]
    mov sp, x9
    ret
    .cfi_endproc
    .size stillpoint_itm_return_again, . - stillpoint_itm_return_again
)");
#endif
