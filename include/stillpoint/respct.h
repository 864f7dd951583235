#ifndef STILLPOINT_RESPCT_H
#define STILLPOINT_RESPCT_H
/* Restart points and in-cache-line logging: the engine respct, after ResPCT [Khorguani, Ropars, De Palma, EuroSys 2022].
 *
 * C and C++; respct.hpp is the more convenient interface for C++. Run the program under `stillpoint run --engine=respct`, or call
 * sp_open("...", "engine=respct"). Without a pool everything here works on ordinary memory.
 *
 * Words: a *logged variable* holds a value, the values it had when the last two epochs began, and the epoch that wrote it
 * last, all in one cache line, so that a crash can roll it back [§3.2.1]. A *restart point* (RP) is a place in the code where a
 * checkpoint may be taken and where a thread may continue after a crash [§3.3]. Between two restart points a thread holds
 * checkpoints off, from its first call of this header on; it counts as standing at a restart point before that, after it has ended, and
 * between sp_respct_checkpoint_allow and sp_respct_checkpoint_prevent.
 *
 * Rules [§3.3.2]: a variable whose scope contains a restart point must lie in the pool. If its first access after a restart point is a
 * read, and it is written later, it must be a logged variable; otherwise sp_respct_add_modified must follow each write. A variable that
 * several threads write must be written under its lock. No restart point may lie inside a critical section.
 *
 * Unless a function says otherwise: any thread may call it, it never calls malloc, and bad use ends the program with a
 * message that names the line. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stillpoint/stillpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Where logged variables lie ------------------------------------------------------------- */

/* The kind of a member of a durable type. Logged variables by the bytes of their value; each takes a run of bytes that is its own
 * alignment, so it never leaves its cache line:
 *     value | value when an even epoch began | value when an odd epoch began | spare | epoch word (8 bytes)
 * Spare: 8 bytes in kinds 2 and 4, which are the program's; few or none in the others.
 * The epoch word is twice the epoch that wrote it last, plus 1 if the epoch before that one wrote it too.
 * Locks lose their waiters and owners in a crash: recovery makes them free. */
typedef enum sp_respct_kind {
    SP_RESPCT_LOGGED_1 = 0, /* values of 1 byte; 16 bytes in all */
    SP_RESPCT_LOGGED_2 = 1, /* 2 bytes; 16 */
    SP_RESPCT_LOGGED_4 = 2, /* 4 bytes; 32 */
    SP_RESPCT_LOGGED_8 = 3, /* 8 bytes; 32 */
    SP_RESPCT_LOGGED_16 = 4, /* 16 bytes; 64 */
    SP_RESPCT_PTHREAD_MUTEX = 8,     /* pthread_mutex_t */
    SP_RESPCT_PTHREAD_CONDITION = 9, /* pthread_cond_t */
    SP_RESPCT_PTHREAD_RWLOCK = 10,   /* pthread_rwlock_t */
    SP_RESPCT_MUTEX = 11,            /* sp_respct_mutex, 4 bytes */
    SP_RESPCT_CONDITION = 12,        /* sp_respct_condition, 4 bytes */
} sp_respct_kind;

/* `count` members of one kind, one after the other. */
typedef struct sp_respct_member {
    uint32_t offset_bytes; /* of the first, in the type */
    uint16_t kind;         /* sp_respct_kind */
    uint16_t count;
} sp_respct_member;

/* A durable type. Recovery finds logged variables by type: memory for the type comes from slabs that hold nothing else.
 * Keep it unchanged and alive while a pool is open. The pool keeps up to 255 different layouts. */
typedef struct sp_respct_layout {
    const char* type_name; /* for messages and `stillpoint info`; cut after 47 bytes */
    uint32_t size_bytes;   /* a multiple of alignment_bytes */
    uint32_t alignment_bytes; /* a power of two, at most 4096; at least that of each member */
    const sp_respct_member* members; /* by offset, at most 24 runs */
    uint32_t member_count;
    uint32_t type;    /* the library's: zero at first */
    uint64_t session; /* likewise */
} sp_respct_layout;

/* Memory for `count` objects of the type, with old bytes: initialise its logged variables by sp_respct_init or zeroes.
 * Free it by sp_free; freed memory is not given out again before the free is durable. NULL with errno: ENOMEM, EINVAL (a layout
 * that contradicts itself), ENOSPC (no room for another layout); sp_last_error() says more. */
void* sp_respct_allocate(sp_respct_layout* layout, size_t count);
/* Allocates and zeroes: zeroes are logged variables of value 0, and free locks. */
void* sp_respct_allocate_zeroed(sp_respct_layout* layout, size_t count);
/* As sp_root: the named array of `count` objects, zeroed at its first call, the same one after a restart. NULL and errno as
 * sp_respct_allocate, and EINVAL where the name belongs to an object of another size. */
void* sp_respct_root(const char* handle, sp_respct_layout* layout, size_t count);

/* ---- Logged variables ------------------------------------------------------------------------- */

/* The running epoch in the form of an epoch word: 2 * epoch + 1; 1 without a pool. The value changes only while every thread
 * is at a restart point. Read it, never write it. */
extern uint64_t sp_respct_running;

/* The first update of a logged variable in an epoch: puts its line on the calling thread's list of lines to write back at the end of
 * the epoch, and returns sp_respct_running. For the inline functions below. */
uint64_t sp_respct_first_update(void* variable);

/* After a write to durable memory that is not logged: puts its lines on that list [§3.2.2]. Two threads may not call it for one line
 * in turn without a common lock. Cost: some ns a line. */
void sp_respct_add_modified(const void* address, size_t size_bytes);

/* A logged variable of 8 bytes, for C; SP_RESPCT_LOGGED_8. A 64-byte line holds two. */
typedef struct sp_respct_logged {
    uint64_t value;
    uint64_t backup[2];
    uint64_t epoch_word;
} __attribute__((aligned(32))) sp_respct_logged;

/* Gives a new variable its first value: once, before any other use [Figure 4, init_InCLL]. */
static inline void sp_respct_init(sp_respct_logged* variable, uint64_t value)
{
    const uint64_t running = sp_respct_first_update(variable);
    variable->value = value;
    variable->backup[0] = value;
    variable->backup[1] = value;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&variable->epoch_word, running & ~(uint64_t)1, __ATOMIC_RELAXED);
}

/* Stores a value [Figure 4, update_InCLL]. Order: backup, epoch word, value; all in one line, so that they persist in this order
 * without any fence [§2.1, PCSO]. Under the variable's lock. Cost: a load, a comparison and the store; at the variable's first update in
 * an epoch some ns more. */
static inline void sp_respct_update(sp_respct_logged* variable, uint64_t value)
{
    if ((variable->epoch_word | 1) != __atomic_load_n(&sp_respct_running, __ATOMIC_RELAXED)) {
        const uint64_t running = sp_respct_first_update(variable);
        const uint64_t last = variable->epoch_word >> 1;
        const uint64_t epoch = running >> 1;
        variable->backup[epoch & 1] = variable->value;
        __atomic_thread_fence(__ATOMIC_RELEASE);
        __atomic_store_n(&variable->epoch_word, (epoch << 1) | (uint64_t)(last + 1 == epoch), __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE);
    }
    __atomic_store_n(&variable->value, value, __ATOMIC_RELAXED);
}

/* ---- Restart points --------------------------------------------------------------------------- */

/* A restart point [Figure 4, RP]. `id`: from 1; different for each place, the same in every run. Waits here while a checkpoint
 * begins. Stores `id` in the thread's frame, if it has one. Cost otherwise: some ns.
 * `file` and `line` are for the message that ends the program if the thread holds a lock. */
void sp_respct_restart_point(int id, const char* file, unsigned line);
#define SP_RESPCT_RP(id) sp_respct_restart_point((id), __FILE__, __LINE__)

/* Binds the calling thread to its frame: an SP_RESPCT_LOGGED_4 variable in the pool, an int, that keeps the id of the thread's last restart
 * point. Its value at the start tells where this thread should continue: 0 is the beginning. NULL: no frame. Binding a frame that
 * another thread has ends the program. */
void sp_respct_bind_frame(void* restart_point);

/* Around a call that may block [§3.3.3, Figure 7]: between the two the thread counts as being at its last restart point, and touches
 * nothing durable. `mutex` is the one that the thread holds, or NULL: while a checkpoint is begun it is released and taken
 * again, since a thread on the way to its restart point may need it. They do not nest. */
void sp_respct_checkpoint_allow(void);
void sp_respct_checkpoint_prevent(pthread_mutex_t* mutex);

/* ---- Locks -------------------------------------------------------------------------------------- */

/* A mutex of one word: it fits into the cache line of the logged variable that it guards, and costs no call. May lie anywhere; in a
 * durable type it is a member of kind SP_RESPCT_MUTEX. Zeroes are a free mutex, and recovery makes it free. Not recursive; only the
 * thread that locked it may unlock it. pthread locks may be used as well. */
typedef struct sp_respct_mutex {
    uint32_t state; /* 0: free; bit 0 held, 1 waited for, 2 and 3 the library's */
} sp_respct_mutex;

/* A condition variable of one word. Zeroes are one without waiters. Change the condition under the mutex. */
typedef struct sp_respct_condition {
    uint32_t changes; /* bit 0: waited for; from bit 1 on a count */
} sp_respct_condition;

/* How many of them the calling thread holds; the highest bit: their calls have more to do. Never touch it. */
extern __attribute__((tls_model("initial-exec"))) __thread uint32_t sp_respct_locks;
void sp_respct_lock_slowly(sp_respct_mutex* mutex);
bool sp_respct_try_lock_slowly(sp_respct_mutex* mutex);
void sp_respct_unlock_slowly(sp_respct_mutex* mutex, uint32_t was);

static inline void sp_respct_lock(sp_respct_mutex* mutex)
{
    uint32_t unheld = 0;
    if ((sp_respct_locks >> 31) != 0 ||
        !__atomic_compare_exchange_n(&mutex->state, &unheld, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        sp_respct_lock_slowly(mutex);
        return;
    }
    ++sp_respct_locks;
}

/* False: it is held. */
static inline bool sp_respct_try_lock(sp_respct_mutex* mutex)
{
    uint32_t unheld = 0;
    if ((sp_respct_locks >> 31) != 0) {
        return sp_respct_try_lock_slowly(mutex);
    }
    if (!__atomic_compare_exchange_n(&mutex->state, &unheld, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        return false;
    }
    ++sp_respct_locks;
    return true;
}

static inline void sp_respct_unlock(sp_respct_mutex* mutex)
{
    const uint32_t was = __atomic_exchange_n(&mutex->state, 0, __ATOMIC_RELEASE);
    if (was != 1) {
        sp_respct_unlock_slowly(mutex, was);
        return;
    }
    --sp_respct_locks;
}

/* Waits as Figure 7 has it: allows checkpoints, releases the mutex, sleeps until a notification, takes the mutex and prevents checkpoints
 * again. May return without a reason: call it in a loop. Call it before the section's first write, since after a crash the thread enters
 * again from its restart point. */
void sp_respct_wait(sp_respct_condition* condition, sp_respct_mutex* mutex);
void sp_respct_notify_one(sp_respct_condition* condition);
void sp_respct_notify_all(sp_respct_condition* condition);

/* ---- Checks of debug builds ------------------------------------------------------------------- */
/* The checked form of respct.hpp calls these functions, and C programs may. Each ends the program with a message that names `file`
 * and `line`, if the use is wrong. Without a pool they check nothing. */

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define SP_RESPCT_ADDRESS_ONLY __attribute__((access(none, 1))) /* or GCC warns of bytes without a value */
#else
#define SP_RESPCT_ADDRESS_ONLY
#endif

/* Before an update: the variable lies in the pool, at a place where recovery finds it; the thread is not at a restart point; and no
 * thread has updated it without a lock in common with this one. */
SP_RESPCT_ADDRESS_ONLY void sp_respct_check_update(const void* variable, unsigned kind, const char* file, unsigned line);
/* Before an init: it lies in the pool and was not initialised since it was allocated. */
SP_RESPCT_ADDRESS_ONLY void sp_respct_check_init(const void* variable, unsigned kind, const char* file, unsigned line);
/* Before sp_respct_add_modified: the range lies in the pool. */
SP_RESPCT_ADDRESS_ONLY void sp_respct_check_modified(const void* address, size_t size_bytes, const char* file, unsigned line);
/* Before a condition wait: nothing durable was written since the thread's restart point. */
void sp_respct_check_wait(const char* file, unsigned line);

#ifdef __cplusplus
}
#endif
#endif
