#ifndef STILLPOINT_PRONTO_H
#define STILLPOINT_PRONTO_H
/* Engine pronto: durable objects by a semantic log and snapshots [Pronto, Memaripour's thesis, chapter 5].
 *
 * pronto.hpp is built on this header, and a binding for another language would be. C++ programs include
 * pronto.hpp instead.
 *
 * An object lies in the pool's durable memory. Its methods that change it are operations: each is logged by name and
 * arguments, runs on the object, and is durable when it is committed. After a crash the newest snapshot is mapped and the
 * operations that it lacks are run again, in commit order. Operations must be deterministic: their effect is a function of
 * the object's state and the arguments.
 *
 * A section is an operation, or lies between sp_fase_begin and sp_fase_end. A lock is none, unlike with other engines: a snapshot
 * may tear durable memory that is written under a lock alone, outside operations.
 *
 * Unless a function says otherwise: any thread may call it, and it returns SP_OK (0) or an sp_error whose text is
 * sp_last_error(). */

#include <stddef.h>
#include <stdint.h>

#include "stillpoint/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ----------------------------------------------------------------------------- */

enum { SP_PRONTO_NAME_BYTES_MAX = 63, SP_PRONTO_SIGNATURE_BYTES_MAX = 255, SP_PRONTO_METHODS_MAX = 256 };

/* The promises of a method. */
enum {
    /* If it throws, the object is as it was before (the strong guarantee). Without it an exception refuses the object: its
     * operations fail, and the pool takes no snapshot any more, until the pool is opened again and the object is
     * recovered without that operation. */
    SP_PRONTO_UNCHANGED_BY_EXCEPTION = 1
};

typedef struct sp_pronto_method {
    const char* name;      /* 1 to SP_PRONTO_NAME_BYTES_MAX bytes: its identity, unique in the type, kept in the pool */
    const char* signature; /* its argument types, at most SP_PRONTO_SIGNATURE_BYTES_MAX bytes: compared as text */
    uint32_t promises;     /* SP_PRONTO_UNCHANGED_BY_EXCEPTION or 0 */
    /* Decodes the arguments and calls the method on the object. SP_E_POOL_CORRUPT: they do not decode. May throw what the
     * method throws: the operation did not throw when it was logged, so the object is refused. */
    int (*replay)(void* object, const void* arguments, size_t bytes);
} sp_pronto_method;

typedef struct sp_pronto_type {
    const char* name; /* 1 to SP_PRONTO_NAME_BYTES_MAX bytes: its identity, kept in the pool with each object */
    size_t size_bytes;
    size_t alignment_bytes; /* at most 64 */
    const sp_pronto_method* methods;
    size_t method_count;
    /* Makes an object in `memory` from encoded constructor arguments. May throw. */
    void (*construct)(void* memory, const void* arguments, size_t bytes);
    void (*destroy)(void* object); /* Ends it and frees what it has allocated. */
    /* Whether two objects have the same state; NULL: not known. For the option verify_replay. */
    int (*equal)(const void* one, const void* other);
} sp_pronto_type;

/* Makes a type known: `type` and all it points to stay valid until the process ends. Objects of the type can then be
 * recovered before they are asked for. The same pointer again does nothing. No pool need be open.
 * Errors: SP_E_INVALID_ARGUMENT (a rule above is broken, or another type has that name). */
int sp_pronto_register(const sp_pronto_type* type);

/* ---- Objects --------------------------------------------------------------------------- */

enum {
    SP_PRONTO_MUST_EXIST = 1,           /* no object is made */
    SP_PRONTO_ACCEPT_CHANGED_METHODS = 2 /* changed signatures are taken over, where no logged operation uses the old ones */
};

/* The object of that name, recovered; made durably by type->construct with the encoded `arguments` where there is none.
 * The first call in a process recovers every object whose type is registered, several at a time.
 * `name`: 1 to 79 bytes, of the same directory as the handles of sp_root. NULL: sp_last_error() says why, and *error has
 *   SP_E_NOT_OPEN; SP_E_POOL_ENGINE (the pool is not one of pronto); SP_E_HANDLE_MISSING (with SP_PRONTO_MUST_EXIST);
 *   SP_E_OBJECT_TYPE (another type, another size, or a method whose signature was changed or that is gone: the text names it);
 *   SP_E_POOL_CORRUPT (which operation, and what is kept); SP_E_OBJECT_REFUSED (an operation that was logged cannot be run
 *   again); SP_E_NO_MEMORY (where the first call has it, later ones too: start the program again);
 *   SP_E_POOL_FULL; SP_E_NO_SPACE; SP_E_IO; SP_E_INSIDE_FASE; SP_E_DETACHED.
 * An exception of type->construct passes through, and nothing was made.
 * Cost: a hash look-up and a lock; a snapshot where the object is made; the first call, the recovery. */
void* sp_pronto_object(const sp_pronto_type* type, const char* name, unsigned flags, const void* arguments, size_t bytes, int* error);

/* Destroys the object and forgets its name, durably. No thread may use it. Cost: a snapshot.
 * Errors: SP_E_HANDLE_MISSING; SP_E_NOT_OPEN; SP_E_OBJECT_TYPE (its type is not registered); SP_E_INSIDE_FASE; as sp_checkpoint. */
int sp_pronto_delete(const char* name);

/* The last 8 bytes in front of each object, for locks inside it: constant while the pool is open, zeroes before sp_pronto_object has
 * returned. A lock that says in which run it was acquired is free in every other one, so a restart need not look for it. */
typedef struct sp_pronto_run {
    uint32_t number; /* of the pool's opening: no other one of that pool, nor of the one that it is a copy of, has had it. Never 0 */
    uint32_t reads_wait; /* 0: what a reader sees is durable already, and sp_pronto_wait_read does nothing */
} sp_pronto_run;

/* 1 if sp_pronto_object has returned `object` and sp_pronto_delete has not destroyed it, otherwise 0. */
int sp_pronto_is_object(const void* object);

/* ---- Operations ------------------------------------------------------------------------ */

/* One operation of one thread, in the caller's memory, from sp_pronto_begin to sp_pronto_end. Its content is the runtime's. */
typedef struct sp_pronto_operation {
    uint64_t words[16];
} sp_pronto_operation;

/* Begins an operation, method number `method` of the object's type, and gives the place where the caller puts its
 * arguments, encoded in `bytes` bytes, 8-byte aligned. Call it before anything is changed and before locks are acquired.
 * It waits while a snapshot is taken, or is needed to make room in the log: then the thread counts as outside its FASEs.
 * While the object is being recovered, and inside another operation on the same object, it begins nothing that is logged:
 *   the place is valid, and the other functions return SP_OK.
 * NULL: nothing was begun, and *error has SP_E_OBJECT_REFUSED; SP_E_POOL_READ_ONLY; SP_E_IO; SP_E_NO_MEMORY; SP_E_DETACHED;
 *   SP_E_INVALID_ARGUMENT (not an object, or inside an operation on another object).
 * Every begun operation must be ended, by the same thread, the inner one first. */
void* sp_pronto_begin(sp_pronto_operation* operation, void* object, uint32_t method, size_t bytes, int* error);

/* The arguments are in place: the runtime makes them durable from now on, while the caller continues [§5.2.1]. */
void sp_pronto_start_logging(sp_pronto_operation* operation);

/* Commits: the operation gets the object's next commit number and is durable on return, at the pool's durability level.
 * Call it inside the lock that orders operations which do not commute [equation 5.1].
 * Errors: SP_E_IO, SP_E_POOL_READ_ONLY, SP_E_NO_SPACE: the object has been changed, and it will not be durable. */
int sp_pronto_commit(sp_pronto_operation* operation);

/* Commits in the same order, but may return before the operation is durable: sp_pronto_end waits for that, when the lock has been
 * released. Then a reader of the object calls sp_pronto_wait_read before it reports what it has read. */
int sp_pronto_commit_early(sp_pronto_operation* operation);

/* Says which operation sp_pronto_wait waits for. A value of the caller's; zeroes: none. It means nothing once the pool was closed. */
typedef struct sp_pronto_ticket {
    const void* object;
    uint64_t turn;
} sp_pronto_ticket;

/* Commits in the same order, and neither this nor sp_pronto_end waits until the operation is durable: sp_pronto_wait does, with what
 * this writes to `ticket`. A crash before that loses the operation, and with it all that came after it on the object. */
int sp_pronto_commit_async(sp_pronto_operation* operation, sp_pronto_ticket* ticket);

/* Waits until the ticket's operation is durable, and with it every operation that was committed before it, on any object of the pool.
 * `timeout_ms`: -1 waits forever, 0 only looks. Any thread, any number of times. Cost where it is durable: a look-up and a load.
 * Errors: SP_E_TIMED_OUT; as sp_pronto_commit: it will never be durable; SP_E_NOT_OPEN. */
int sp_pronto_wait(const sp_pronto_ticket* ticket, int64_t timeout_ms);

/* From here to sp_pronto_defer_end the calling thread's operations are committed as by sp_pronto_commit_async, whatever the structure
 * calls that does them. Pairs may be nested: the outermost counts. */
void sp_pronto_defer_begin(void);
/* `ticket` (NULL: not wanted) gets that of the thread's newest operation since the outermost begin; zeroes: it did none. */
void sp_pronto_defer_end(sp_pronto_ticket* ticket);

/* 1: the calling thread is inside an operation, or runs logged operations again. What it begins now would not be logged, or would be
 * refused. */
int sp_pronto_inside_operation(void);

/* From here to sp_pronto_group_end one fence makes the calling thread's operations durable, where each would have one of its own: commits
 * return before their operation is durable. Until the end no other thread may see what they have changed, nor may anything be answered:
 * the caller holds the lock that orders them. A crash in between loses a number of the newest. Pairs may be nested: the outermost
 * counts. Operations that follow each other on one object share the fence. */
void sp_pronto_group_begin(void);
/* The group's operations are durable on return, on byte-addressable media; otherwise when sp_pronto_wait says so of `ticket` (NULL: not
 * wanted), which gets zeroes where there was no operation. Errors: as sp_pronto_commit, of all of them; SP_E_INVALID_ARGUMENT (no group
 * was begun). */
int sp_pronto_group_end(sp_pronto_ticket* ticket);
/* Waits for the ticket's operation as sp_pronto_wait does; between sp_pronto_defer_begin and its end it does not, and the ticket counts as
 * that of the calling thread's newest operation. For an operation that another thread has done for it. */
int sp_pronto_wait_or_defer(const sp_pronto_ticket* ticket);

/* Ends the operation. One that was not committed is rolled out of the log: the program undid what it had changed, or its
 * method promises SP_PRONTO_UNCHANGED_BY_EXCEPTION, otherwise the object is refused from now on.
 * `by_exception`: nonzero if an exception ends it. An operation that is not committed and ends without one
 * has changed nothing. Errors: as sp_pronto_commit, after sp_pronto_commit_early. */
int sp_pronto_end(sp_pronto_operation* operation, int by_exception);

/* Commits the calling thread's innermost logged operation, for a structure that does not see the `sp_pronto_operation` of the
 * wrapper around it. SP_OK where there is none (in a replay). Errors: as sp_pronto_commit. */
int sp_pronto_commit_current(void);

/* Waits until everything that was committed early on the object by now is durable. Cost without any: two loads. */
int sp_pronto_wait_read(const void* object);

/* ---- Facts ------------------------------------------------------------------------------ */

/* Commit number of the newest operation on the object that has been committed, and of the newest that is durable with all before it.
 * They are never reused, not even after a crash. Either pointer may be NULL. */
int sp_pronto_numbers(const void* object, uint64_t* committed, uint64_t* durable);

/* Takes a snapshot now and waits until it is durable, as sp_checkpoint does. */
int sp_pronto_snapshot(void);

#ifdef __cplusplus
}
#endif
#endif
