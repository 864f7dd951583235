#ifndef STILLPOINT_SPHT_H
#define STILLPOINT_SPHT_H
/* Engine spht: transactions that are durable when their commit returns [SPHT, Castro, Baldassin, Barreto, Romano; FAST 2021].
 *
 * spht.hpp is built on this header, and a binding for another language would be. C++ programs include spht.hpp instead.
 *
 * Within a transaction durable memory is read and written by the functions below. Other threads see nothing of it before it commits, and
 * then all of it; a crash leaves all of it or nothing. What a transaction reads is as of one moment at all times, also where it will have
 * to be run again: it never sees another one half done.
 *
 * Memory that is not durable may be read and written by these functions too: it is then isolated and rolled back alike, and lost by a
 * crash. Durable memory that is written outside transactions, by plain stores, is not durable.
 *
 * Unless a function says otherwise: any thread may call it, it returns SP_OK (0) or an sp_error whose text is sp_last_error(), and
 * what takes a transaction is called by the thread that began it. */

#include <stddef.h>
#include <stdint.h>

#include "stillpoint/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's transaction. */
typedef struct sp_spht_transaction sp_spht_transaction;

enum {
    /* It writes, allocates and frees nothing: less is kept of it, and it returns when what it has read is durable. */
    SP_SPHT_READ_ONLY = 1,
    /* It runs alone, so it meets no conflict and its body runs once: for bodies that do what cannot be rolled back. */
    SP_SPHT_IRREVOCABLE = 2,
    /* A transaction that wrote nothing returns at once, as in the paper: what it has read may be lost by a crash that follows. */
    SP_SPHT_READS_MAY_BE_LOST = 4
};

/* Runs body(transaction, argument) as a transaction until it commits. The body returns
 *   SP_OK: commit;
 *   SP_E_CONFLICT, as the functions below gave it: everything is rolled back, and the body is run again;
 *   any other value: everything is rolled back, and that value is returned.
 * After SPHT_ATTEMPTS_MAX conflicts the body runs alone. Inside a transaction of the thread the body becomes a part of that one, and what
 * is returned is the body's result [flat nesting].
 * Returns SP_OK: everything is durable. Errors: SP_E_NOT_OPEN; SP_E_POOL_ENGINE (the pool is of another engine);
 * SP_E_TRANSACTION_TOO_LARGE; SP_E_IO, SP_E_NO_SPACE, SP_E_POOL_READ_ONLY (the transaction is done, and may be lost by a crash: nothing
 * becomes durable any more); SP_E_NO_MEMORY; SP_E_DETACHED; SP_E_INVALID_ARGUMENT (unknown flags).
 * Cost, without conflict: some 50 ns, 15 ns for each word that is read and 30 for each that is written, and making the log durable:
 * two fences on byte-addressable media, one sync that all threads share on a disk. */
int sp_spht_run(int (*body)(sp_spht_transaction* transaction, void* argument), void* argument, unsigned flags);
enum { SPHT_ATTEMPTS_MAX = 10 };

/* The same by parts, for bindings. After SP_E_CONFLICT of any function the transaction must be ended by sp_spht_abort(…, 1), and be begun again.
 * NULL: *error (which may be NULL) has the reason, as for sp_spht_run. Inside a transaction of the thread: that one, nested. */
sp_spht_transaction* sp_spht_begin(unsigned flags, int* error);
/* Ends the innermost one. Errors: SP_E_CONFLICT (everything is rolled back: begin again); as sp_spht_run; SP_E_NO_TRANSACTION. */
int sp_spht_commit(sp_spht_transaction* transaction);
/* Rolls everything back, the outer ones too. `tries_again`: another attempt follows; actions for an abort are then forgotten and not run. */
int sp_spht_abort(sp_spht_transaction* transaction, int tries_again);
/* The calling thread's transaction; NULL: it is in none. */
sp_spht_transaction* sp_spht_current(void);

/* ---- Inside a transaction ---------------------------------------------------------------- */

/* SP_OK or SP_E_CONFLICT, without a text. `place` is aligned to its size, which is that of the value. */
int sp_spht_read_word(sp_spht_transaction* transaction, const uint64_t* place, uint64_t* value);
/* Of the bytes where `mask` has ones. */
int sp_spht_write_word(sp_spht_transaction* transaction, uint64_t* place, uint64_t value, uint64_t mask);
/* Any number of bytes at any address, word by word. */
int sp_spht_read(sp_spht_transaction* transaction, const void* place, void* value, size_t bytes);
int sp_spht_write(sp_spht_transaction* transaction, void* place, const void* value, size_t bytes);

/* A block of durable memory, aligned to 16 bytes, which is free again if the transaction is rolled back. Its bytes are old ones. NULL: no
 * memory; sp_last_error() says why. */
void* sp_spht_malloc(sp_spht_transaction* transaction, size_t bytes);
/* As sp_aligned_alloc(). */
void* sp_spht_aligned_alloc(sp_spht_transaction* transaction, size_t alignment_bytes, size_t bytes);
/* Frees a block at the commit. NULL is allowed. Errors: SP_E_INVALID_ARGUMENT (no live block begins there, or it was freed in this
 * transaction already). sp_malloc and sp_free are not parts of a transaction: they happen at once. */
int sp_spht_free(sp_spht_transaction* transaction, void* block);

/* action(argument) is called once, by this thread, after the outermost commit and outside of any transaction; or after everything was
 * rolled back for good. In the order in which they were given. Errors: SP_E_NO_MEMORY. */
int sp_spht_on_commit(sp_spht_transaction* transaction, void (*action)(void* argument), void* argument);
int sp_spht_on_abort(sp_spht_transaction* transaction, void (*action)(void* argument), void* argument);

#ifdef __cplusplus
}
#endif
#endif
