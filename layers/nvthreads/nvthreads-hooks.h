#ifndef NVTHREADS_HOOKS_H
#define NVTHREADS_HOOKS_H
/* The wrapper header of the layer nvthreads: libstillpoint with the engine `nvthreads`. Its own API is stillpoint.h:
 * a program of threads and locks needs allocation and roots from it, and nothing else; a FASE lasts from a
 * thread's outermost lock acquire to the matching release, whether or not durable_fase_begin is called.
 *
 * Needs the names of POSIX: -std=gnu11, or _POSIX_C_SOURCE=200809L with -std=c11.
 * Durability: with option acknowledge=unlock a FASE is durable when its outermost unlock has returned; with acknowledge=order soon after,
 * in the order of FASEs, and sp_wait_durable(sp_epoch(), timeout_ms) waits for it. At the pool's level. */

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include <stillpoint/stillpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The operations that every layer has (layers/README.md) ----------------------------------------------------- */

#define DURABLE_LAYER "nvthreads"
typedef pthread_rwlock_t durable_rwlock;

/* Under `stillpoint run --pool` the pool is open already, and `path` is not examined. A pool of libstillpoint grows by
 * itself: `size_bytes` is not needed. */
static inline int durable_open(const char* path, size_t size_bytes)
{
    (void)size_bytes;
    if (sp_start_kind() != SP_START_VOLATILE) {
        return 0;
    }
    return sp_open(path, "engine=nvthreads") == SP_OK ? 0 : EIO;
}
static inline void durable_close(void) { (void)sp_close(); }
static inline const char* durable_error(void) { return sp_last_error(); }
static inline void* durable_root(size_t size_bytes) { return sp_root("durable-root", size_bytes); }
static inline void* durable_allocate(size_t size_bytes) { return sp_malloc(size_bytes); }
static inline void durable_release(void* block) { sp_free(block); }
static inline void durable_fase_begin(void) { sp_fase_begin(); }
static inline int durable_fase_end(void)
{
    sp_fase_end();
    return 0;
}
static inline void durable_read_lock(durable_rwlock* lock) { (void)pthread_rwlock_rdlock(lock); }
static inline void durable_write_lock(durable_rwlock* lock) { (void)pthread_rwlock_wrlock(lock); }
static inline void durable_unlock(durable_rwlock* lock) { (void)pthread_rwlock_unlock(lock); }

#ifdef __cplusplus
}
#endif
#endif
