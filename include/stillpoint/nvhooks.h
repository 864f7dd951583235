#ifndef STILLPOINT_NVHOOKS_H
#define STILLPOINT_NVHOOKS_H
/* For programs that announce their own stores: instrumented by `stillpoint cc`, or by hand.
 *
 * With the tracker `hooks` [PMThreads §3.2, PMThreads-I] only marked stores become durable. Code that
 * `stillpoint cc` compiles marks its stores by itself. This header is for the rest: assembly, code made at run
 * time, compiled libraries, and declarations of functions in such libraries. With any other
 * tracker, or without a pool, marking does nothing and costs a load and a branch. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Announces that [address, +size_bytes) was written. Call it after the store and inside the same FASE: before the
 * release that ends it. Bytes outside durable memory are ignored, so that it may be called for any
 * buffer. Any thread; async-signal-safe; never fails. Durable with the checkpoint that the
 * FASE belongs to. Cost: a few instructions, and one more for each further 4 KiB. */
void sp_mark_written(const void* address, size_t size_bytes);

/* ---- The hooks that instrumented code may call [NVHooks Table 4.1] ---------------------- */
/* Code compiled with `marks: calls` calls these; with `marks: cards`, the default, it has the
 * marks in line and calls none. An adaptation layer's shim defines its own in their place. */

/* Whether `address` is durable memory: lies in the window. */
bool nvhooks_is_nvm(const void* address);
/* Pointers into durable memory are absolute here: returns its argument. */
void* nvhooks_to_absolute_ptr(uintptr_t pointer);
/* These do nothing, except under `stillpoint lint`: only stores are announced. */
void nvhooks_pre_nvm_read(const void* address, size_t size_bytes);
void nvhooks_post_nvm_read(const void* address, size_t size_bytes);
/* Announces that [address, +size_bytes) is about to be written, to engines that keep the old bytes; otherwise a load and a branch. */
void nvhooks_pre_nvm_write(void* address, size_t size_bytes);
/* As sp_mark_written. `stillpoint lint` also reports the store if the thread is in no FASE. */
void nvhooks_post_nvm_write(void* address, size_t size_bytes);
/* Does nothing, except under `stillpoint lint`: reports a `value` that points outside durable memory. */
void nvhooks_pointer_stored(void* location, const void* value);
/* Does nothing, except under `stillpoint lint` of a program with restart points: reports a call in which the thread holds
 * checkpoints off. */
void nvhooks_blocking_call(const char* function, uintptr_t first_argument, uintptr_t second_argument);

#ifdef __cplusplus
}
#endif

/* ---- Declarations for the compiler [NVHooks Figure 4.3] ---------------------------------- */
/* Declares which memory a function of a compiled library reads or writes through its arguments, so that the pass hooks its calls:
 *
 *     nvm_write(arg0, arg1 * 8) void fill(double *values, size_t count);
 *
 * Arguments are arg0, arg1, …; a size is made of integers, argN, strlen(argN), return, min(a,b), + and *.
 * Of no effect with a compiler that has no `annotate`: GCC's objects carry no hooks anyway. */
#if defined(__has_attribute)
#if __has_attribute(annotate)
#define nvm_write(pointer_arg, size_expr) __attribute__((annotate("nvm_write:" #pointer_arg ":" #size_expr)))
#define nvm_read(pointer_arg, size_expr) __attribute__((annotate("nvm_read:" #pointer_arg ":" #size_expr)))
#endif
#endif
#ifndef nvm_write
#define nvm_write(pointer_arg, size_expr)
#define nvm_read(pointer_arg, size_expr)
#endif

#endif
