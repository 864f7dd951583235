#ifndef UNDO_HOOKS_H
#define UNDO_HOOKS_H
/* The wrapper header of the layer undo: a minimal undo-log runtime. README.md beside it says how it works, what
 * it promises and what it leaves out.
 *
 * A FASE lasts from a thread's outermost undo_fase_begin to the matching undo_fase_end. When that returns the FASE is
 * durable; a crash before undoes all of it. Native pointers: the pool always lies at UNDO_WINDOW_BASE.
 * Durability: the death of the process, always. The death of the machine only where the pool's file system grants MAP_SYNC
 * (DAX): undo_durability() tells.
 *
 * Needs the names of POSIX: -std=gnu11, or _POSIX_C_SOURCE=200809L with -std=c11.
 * One pool at a time for each process, by one process at a time. Any thread may call any function; at most UNDO_THREADS_MAX
 * threads at a time (16 where the pool is smaller than 64 MiB) may have written to durable memory. A child made by fork has no pool. */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UNDO_WINDOW_SHIFT 40
#define UNDO_WINDOW_INDEX ((uintptr_t)0x4a)
#define UNDO_WINDOW_BASE (UNDO_WINDOW_INDEX << UNDO_WINDOW_SHIFT)
#define UNDO_THREADS_MAX 128

/* Opens the pool at `path` and undoes what a crash left unfinished; makes it, of `size_bytes` (1 MiB to 1 TiB), where there is
 * none. The size of a pool never changes. 0 or an errno; undo_error() says what is wrong and what to do.
 *   EBUSY another process, or this one, has a pool open   EINVAL not a pool, or damaged   EEXIST the window is taken
 *   ENOSPC the file system is full                        others: of the system call that failed */
int undo_open(const char* path, size_t size_bytes);

/* No thread may be in a FASE or touch durable memory afterwards. */
void undo_close(void);

/* "power", "process", or "none" where no pool is open. */
const char* undo_durability(void);

/* The message of the calling thread's last failure; never NULL. */
const char* undo_error(void);

/* The root object: zeroed when first asked for, the same one ever after. NULL with errno: ENOMEM, or EINVAL where it was made
 * with another size. Not to be called by two threads at a time. */
void* undo_root(size_t size_bytes);

/* Allocates as part of the running FASE; the block is at a multiple of 16 and holds old bytes. NULL with errno: EINVAL outside of a
 * FASE, ENOMEM where the pool is full (the FASE continues). Cost: a log entry, some 100 ns. */
void* undo_alloc(size_t size_bytes);

/* Frees when the outermost FASE ends; outside of one, at once. NULL is allowed. */
void undo_free(void* block);

/* Nest. Cost of the outermost end: nothing where nothing was written, otherwise two fences and a write back for each line. */
void undo_fase_begin(void);
void undo_fase_end(void);

/* A reader-writer lock in durable or other memory. Zero bytes are a free lock, and every lock is free after a restart. A write lock
 * that is released inside a FASE stays with the thread until the outermost FASE has ended: no thread sees what may still be
 * undone. So a lock that guards durable data must be one of these. */
typedef struct undo_rwlock {
    uint64_t run;    /* the opening of the pool in which `lock` was made ready */
    uint64_t writer; /* the thread that has it for writing */
    pthread_rwlock_t lock;
} undo_rwlock;

void undo_read_lock(undo_rwlock* lock);
void undo_write_lock(undo_rwlock* lock);
void undo_unlock(undo_rwlock* lock);

/* ---- The operations that every layer has (layers/README.md) ----------------------------------------------------- */

#define DURABLE_LAYER "undo"
typedef undo_rwlock durable_rwlock;

static inline int durable_open(const char* path, size_t size_bytes) { return undo_open(path, size_bytes); }
static inline void durable_close(void) { undo_close(); }
static inline const char* durable_error(void) { return undo_error(); }
static inline void* durable_root(size_t size_bytes) { return undo_root(size_bytes); }
static inline void* durable_allocate(size_t size_bytes) { return undo_alloc(size_bytes); }
static inline void durable_release(void* block) { undo_free(block); }
static inline void durable_fase_begin(void) { undo_fase_begin(); }
static inline int durable_fase_end(void)
{
    undo_fase_end();
    return 0;
}
static inline void durable_read_lock(durable_rwlock* lock) { undo_read_lock(lock); }
static inline void durable_write_lock(durable_rwlock* lock) { undo_write_lock(lock); }
static inline void durable_unlock(durable_rwlock* lock) { undo_unlock(lock); }

#ifdef __cplusplus
}
#endif
#endif
