#ifndef STILLPOINT_ITM_H
#define STILLPOINT_ITM_H
/* Durable memory inside __transaction_atomic and __transaction_relaxed of programs that GCC compiles with -fgnu-tm. Such a program is
 * linked with -lstillpoint-itm instead of -litm; docs/guide/transactions.md has the rules.
 *
 * The functions may be called inside and outside of transactions, by any thread. */

#include <stddef.h>

#include "stillpoint/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Not declared as functions like malloc: the compiler takes what those return for memory that no other thread knows, and lets the
 * transaction store into it unnoticed. */
#if defined(__GNUC__) && !defined(__clang__)
#define SP_TM_FUNCTION __attribute__((transaction_pure))
#else
#define SP_TM_FUNCTION
#endif

/* As sp_malloc; inside a transaction a part of it: the block is free again if the transaction is rolled back. */
SP_TM_FUNCTION void* sp_tm_malloc(size_t size_bytes);
SP_TM_FUNCTION void* sp_tm_aligned_alloc(size_t alignment_bytes, size_t size_bytes);
/* As sp_free; inside a transaction at its commit. free() does the same there, for blocks of either kind. */
SP_TM_FUNCTION void sp_tm_free(void* block);

/* Whether every transaction that has ended is durable, as far as a commit was told: SP_OK, or why the first one is not (SP_E_IO,
 * SP_E_NO_SPACE, SP_E_POOL_READ_ONLY). A commit of __transaction_atomic cannot return an error; it is reported on stderr once. */
SP_TM_FUNCTION int sp_tm_status(void);

#ifdef __cplusplus
}
#endif
#endif
