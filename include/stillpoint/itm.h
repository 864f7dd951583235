#ifndef STILLPOINT_ITM_H
#define STILLPOINT_ITM_H
/* Durable memory inside __transaction_atomic and __transaction_relaxed of programs that GCC compiles with -fgnu-tm, and inside transactions
 * of programs that `stillpoint cc --runtime=spht` compiles. Both are linked with -lstillpoint-itm, and not with -litm;
 * docs/guide/transactions.md and docs/guide/spht.md have the rules.
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

/* ---- For `stillpoint cc --runtime=spht`, which has no statement for transactions ------------------------------ */

/* Runs body(argument) as a transaction. Inside it, and inside what it calls, memory is read and written as usual: the compiler has made
 * clones whose accesses go through the engine. After a conflict, or where the transaction has to run alone, the body begins again: without
 * destructors, since all that they would undo is undone.
 * Where the body has no clone (another compiler has compiled it), or `flags` has SP_SPHT_IRREVOCABLE, the body itself runs, alone and once.
 * `flags` may also have SP_SPHT_READ_ONLY: a body that writes all the same is run again as one that may.
 * Inside another transaction of the thread it is a part of that one, and `flags` do not count.
 * A C++ exception that leaves the body rolls everything back and passes on; an irrevocable transaction commits.
 * Returns SP_OK: the transaction is durable. Errors:
 *   SP_E_ABORTED (sp_tm_cancel), SP_E_TRANSACTION_TOO_LARGE (an irrevocable one ends the process): everything is rolled back;
 *   SP_E_INVALID_ARGUMENT (unknown flags), SP_E_POOL_ENGINE (the pool is of another engine), SP_E_DETACHED (a child made by fork),
 *   SP_E_NO_MEMORY (or too many threads): the body did not run;
 *   those of sp_tm_status: it is done in memory and a crash may lose it.
 * Without a pool the body runs too, one transaction at a time. */
int sp_tm_run(void (*body)(void* argument), void* argument, unsigned flags);
/* As sp_tm_run, with the body's clone, which the compiler writes; NULL: it has none. */
int sp_tm_run_pair(void (*body)(void* argument), void (*clone)(void* argument), void* argument, unsigned flags);

/* Rolls everything back; the outermost sp_tm_run returns SP_E_ABORTED. An irrevocable transaction cannot be cancelled: the process ends. */
#if defined(__cplusplus)
[[noreturn]]
#else
_Noreturn
#endif
void sp_tm_cancel(void);

/* action(argument) is called once after the outermost transaction's commit; outside of transactions at once. */
void sp_tm_on_commit(void (*action)(void* argument), void* argument);

/* The compiler writes calls of it: `clone`, or `function` in a transaction that has become irrevocable. */
void* sp_tm_clone_or_irrevocable(void* clone, void* function);

/* Declares a function that transactions of `stillpoint cc` call as it is: one that touches no memory that other threads write, and that may
 * run several times. */
#if defined(__clang__)
#define SP_TM_PURE __attribute__((noinline, annotate("sp_tm_pure")))
#else
#define SP_TM_PURE
#endif

#ifdef __cplusplus
}
#endif
#endif
