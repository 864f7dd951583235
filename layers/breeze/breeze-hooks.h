#ifndef BREEZE_HOOKS_H
#define BREEZE_HOOKS_H
/* The wrapper header of the layer breeze: libstillpoint with the engine `breeze`. Its own API is stillpoint/breeze.h: a program that
 * describes its types and uses nvm_alloc needs nothing else; `stillpoint cc --runtime=breeze` puts an undo entry before each store, so
 * nvm_log is not called by hand. A store to an object outside of a transaction ends the process, with a message.
 *
 * The functions below are for programs that compile for every layer. They know no types: what breeze_allocate gives lives until
 * breeze_release, its pointers are not rewritten, and a pool that is used so is opened at its own address or not at all.
 *
 * Needs the names of POSIX: -std=gnu11, or _POSIX_C_SOURCE=200809L with -std=c11.
 * Durability: a FASE is durable when its outermost breeze_fase_end has returned, at the pool's level. */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <stillpoint/breeze.h>
#include <stillpoint/stillpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 or an errno. One such pool at a time. */
int breeze_open(const char* path, size_t size_bytes);
void breeze_close(void);
/* Zeroed when first asked for; NULL where it was made with another size. Not to be called by two threads at a time. */
void* breeze_root(size_t size_bytes);
/* Zeroed. Inside a FASE; undone with it. */
void* breeze_allocate(size_t size_bytes);
void breeze_release(void* block);
void breeze_fase_begin(void);
int breeze_fase_end(void);

/* Zero bytes are a free lock, and every lock is free after a restart. */
typedef struct breeze_rwlock {
    uint64_t run; /* of the process that has made `lock` ready */
    pthread_rwlock_t lock;
} breeze_rwlock;
void breeze_read_lock(breeze_rwlock* lock);
void breeze_write_lock(breeze_rwlock* lock);
void breeze_unlock(breeze_rwlock* lock);

/* ---- The operations that every layer has (layers/README.md) ----------------------------------------------------- */

#define DURABLE_LAYER "breeze"
typedef breeze_rwlock durable_rwlock;

static inline int durable_open(const char* path, size_t size_bytes) { return breeze_open(path, size_bytes); }
static inline void durable_close(void) { breeze_close(); }
static inline const char* durable_error(void) { return sp_last_error(); }
static inline void* durable_root(size_t size_bytes) { return breeze_root(size_bytes); }
static inline void* durable_allocate(size_t size_bytes) { return breeze_allocate(size_bytes); }
static inline void durable_release(void* block) { breeze_release(block); }
static inline void durable_fase_begin(void) { breeze_fase_begin(); }
static inline int durable_fase_end(void) { return breeze_fase_end(); }
static inline void durable_read_lock(durable_rwlock* lock) { breeze_read_lock(lock); }
static inline void durable_write_lock(durable_rwlock* lock) { breeze_write_lock(lock); }
static inline void durable_unlock(durable_rwlock* lock) { breeze_unlock(lock); }

#ifdef __cplusplus
}
#endif
#endif
