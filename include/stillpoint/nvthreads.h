#ifndef STILLPOINT_NVTHREADS_H
#define STILLPOINT_NVTHREADS_H
/* The recovery interface of NVthreads, with its names [PMThreads, Figure 2].
 * A program written for those papers compiles against this header unchanged.
 *
 * Stores into a block belong into a failure-atomic section. In those papers, with the engine that a pool gets by default, and with the
 * engine nvthreads, a section lasts from a thread's outermost lock to its release. With the other engines locks are not what delimits
 * one: the head of stillpoint.h says for each engine what does. Each call below is a section of its own, or part of the caller's. */

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* True if an earlier run left durable memory behind and did not end normally. */
bool crashed(void);

/* Allocates `size_bytes` of durable memory under the name `handle` (1 to 79 bytes), zeroed.
 * If the name exists already, the new block gets it, and the old block is freed.
 * A NULL handle allocates without a name. Aligned to 16 bytes. NULL and errno ENOMEM, EINVAL or ENOSPC. */
void* nvmalloc(size_t size_bytes, const char* handle);

/* Finds the object named `handle`. Where `destination` is not NULL, min(size_bytes, its size)
 * bytes are also copied there, as the papers' programs expect. Returns the durable object
 * itself, or NULL with errno ENOENT if there is none of that name. */
void* nvrecover(void* destination, size_t size_bytes, const char* handle);

/* Frees a block of nvmalloc and its name. NULL is allowed. */
void nvfree(void* block);

#ifdef __cplusplus
}
#endif
#endif
