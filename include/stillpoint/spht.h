#ifndef STILLPOINT_SPHT_H
#define STILLPOINT_SPHT_H
/* Engine spht: transactions that are durable when their commit returns [SPHT, Castro, Baldassin, Barreto, Romano; FAST 2021].
 *
 * spht.hpp is built on this header, and a binding for another language would be. C++ programs include spht.hpp instead.
 *
 * Inside a transaction durable memory is read and written by the functions below. Other threads see nothing of it before its commit, and
 * then all of it; a crash leaves all of it or nothing. Everything that a transaction reads is as of one moment, also where the
 * transaction will meet a conflict and be run again: it never sees a part of another one.
 *
 * Memory that is not durable may be read and written by these functions too. It is isolated and rolled back like durable memory, and
 * a crash loses it. Durable memory that is written outside transactions, by plain stores, is not durable; the option verify_stores ends
 * the program there.
 *
 * Unless a function says otherwise: any thread may call it, and it returns SP_OK (0) or an sp_error whose text is sp_last_error().
 * A function that takes a transaction is called by the thread that began it, before its end; that is not checked, except where
 * SP_E_NO_TRANSACTION is among the errors. */

#include <stddef.h>
#include <stdint.h>

#include "stillpoint/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's transaction. */
typedef struct sp_spht_transaction sp_spht_transaction;

/* How a transaction runs. Nested ones run as the outermost does: their own flags do not count. */
enum {
    /* The body writes, allocates and frees nothing: SP_E_INVALID_ARGUMENT if it tries. Fewer notes are kept of what is read. The commit
     * returns when what was read is durable. */
    SP_SPHT_READ_ONLY = 1,
    /* No other transaction runs meanwhile. So the body meets no conflict and runs once, and may do what cannot be undone. */
    SP_SPHT_IRREVOCABLE = 2,
    /* The commit of a transaction that wrote nothing returns at once, as in the paper: a crash may lose what it has read. */
    SP_SPHT_READS_MAY_BE_LOST = 4,
    /* When the transaction has ended, memory that no other thread can reach any more may be read, written and freed by plain accesses. The
     * end waits for the transactions that began before it, and beginning costs a fence more in every thread. */
    SP_SPHT_PRIVATIZES = 8,
    /* With SP_SPHT_IRREVOCABLE: durable memory may be written by plain stores too, also by functions that know nothing of transactions. The
     * transaction finds them, and they become durable with it; they cannot be rolled back. Costs a walk over the page tables of the pool,
     * 2 ns a page and 50 for one that was written since the last one, at its beginning and its end, and the whole page in the log.
     * Error: SP_E_UNSUPPORTED (needs userfaultfd and Linux 6.7). */
    SP_SPHT_PLAIN_STORES = 16
};

/* Runs body(transaction, argument) as a transaction until it commits. The body returns
 *   SP_OK: commit;
 *   SP_E_CONFLICT, which the functions below have returned: everything is rolled back, and the body runs again;
 *   any other value: everything is rolled back, and that value is returned, without a text.
 * After SPHT_ATTEMPTS_MAX conflicts the body runs alone. Inside a transaction of the thread the body becomes a part of that one, and
 * the body's result is returned [flat nesting].
 * Returns SP_OK: the transaction is durable, at the pool's durability level, and so is everything that it has read.
 * Errors: SP_E_NOT_OPEN; SP_E_POOL_ENGINE (the pool is of another engine); SP_E_DETACHED (a child made by fork); SP_E_INVALID_ARGUMENT
 *   (unknown flags); SP_E_NO_MEMORY (or too many threads): the body did not run. SP_E_TRANSACTION_TOO_LARGE: everything is rolled back.
 *   SP_E_IO, SP_E_NO_SPACE, SP_E_POOL_READ_ONLY: the transaction is done in memory and a crash may lose it; nothing becomes durable in
 *   this run any more.
 * Cost, without conflict: some look-ups for each word that is read or written, and making the log durable: two fences on
 * byte-addressable media, one sync that all threads share on a disk. It waits while the log is full. */
int sp_spht_run(int (*body)(sp_spht_transaction* transaction, void* argument), void* argument, unsigned flags);
enum { SPHT_ATTEMPTS_MAX = 10 };

/* sp_spht_run in steps, for bindings. After SP_E_CONFLICT of any function the outermost transaction is ended by sp_spht_abort(…, 1), and
 * begun again. Inside a transaction of the thread that one is returned, nested.
 * NULL: nothing was begun; *error (`error` may be NULL) has the reason, as for sp_spht_run. */
sp_spht_transaction* sp_spht_begin(unsigned flags, int* error);
/* Ends the innermost nested transaction, which only counts; or the outermost one, which commits.
 * Errors: SP_E_CONFLICT, without a text (an outermost one is rolled back: begin again); those of a commit in sp_spht_run;
 *   SP_E_NO_TRANSACTION (NULL, or it has ended). */
int sp_spht_commit(sp_spht_transaction* transaction);
/* Rolls everything back and ends the transaction, the outer ones too. `tries_again`: another attempt follows, and the actions for an
 * abort are forgotten instead of called. Errors: SP_E_NO_TRANSACTION (NULL, or it has ended and `tries_again` is 0). */
int sp_spht_abort(sp_spht_transaction* transaction, int tries_again);
/* The calling thread's transaction; NULL: the thread is in none. */
sp_spht_transaction* sp_spht_current(void);

/* ---- Inside a transaction ---------------------------------------------------------------- */

/* The functions that read and write return SP_OK, or SP_E_CONFLICT without a text. After a conflict, reads give zeroes and all of these
 * functions SP_E_CONFLICT until the transaction is ended. */

/* Reads the aligned word at `place`, which is readable memory of any kind. */
int sp_spht_read_word(sp_spht_transaction* transaction, const uint64_t* place, uint64_t* value);
/* Writes the bytes of the aligned word at `place` where `mask` has ones: whole bytes. Stored at the commit. */
int sp_spht_write_word(sp_spht_transaction* transaction, uint64_t* place, uint64_t value, uint64_t mask);
/* Read or write any number of bytes at any address, word by word. */
int sp_spht_read(sp_spht_transaction* transaction, const void* place, void* value, size_t bytes);
int sp_spht_write(sp_spht_transaction* transaction, void* place, const void* value, size_t bytes);

/* A block of durable memory, aligned to 16 bytes. It is free again if the transaction is rolled back, or if a crash loses it. Its content
 * is undefined; write it by the functions above. NULL: no memory; sp_last_error() says why. */
void* sp_spht_malloc(sp_spht_transaction* transaction, size_t bytes);
/* Like sp_spht_malloc, with the alignment of sp_aligned_alloc. */
void* sp_spht_aligned_alloc(sp_spht_transaction* transaction, size_t alignment_bytes, size_t bytes);
/* Frees a block at the commit. NULL is allowed. sp_malloc and sp_free are not parts of a transaction: they happen at once.
 * Errors: SP_E_INVALID_ARGUMENT (no live block begins there, or this transaction has freed it already). */
int sp_spht_free(sp_spht_transaction* transaction, void* block);

/* action(argument) is called once by this thread, outside of any transaction: on_commit after the outermost commit, also where that
 * reports SP_E_IO or its like; on_abort after everything was rolled back for good. In the order in which they were given.
 * Errors: SP_E_NO_MEMORY (more than 1,048,576 actions). */
int sp_spht_on_commit(sp_spht_transaction* transaction, void (*action)(void* argument), void* argument);
int sp_spht_on_abort(sp_spht_transaction* transaction, void (*action)(void* argument), void* argument);

#ifdef __cplusplus
}
#endif
#endif
