#ifndef VOLATILE_HOOKS_H
#define VOLATILE_HOOKS_H
/* The operations that every layer has (layers/README.md), by malloc and pthread alone: the same program with nothing
 * that survives it. What the benchmarks compare with. */

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#define DURABLE_LAYER "volatile"
typedef pthread_rwlock_t durable_rwlock;

static inline int durable_open(const char* path, size_t size_bytes)
{
    (void)path;
    (void)size_bytes;
    return 0;
}
static inline void durable_close(void) {}
static inline const char* durable_error(void) { return ""; }
static inline void* durable_root(size_t size_bytes) { return calloc(1, size_bytes); }
static inline void* durable_allocate(size_t size_bytes) { return malloc(size_bytes); }
static inline void durable_release(void* block) { free(block); }
static inline void durable_fase_begin(void) {}
static inline int durable_fase_end(void) { return 0; }
static inline void durable_read_lock(durable_rwlock* lock) { (void)pthread_rwlock_rdlock(lock); }
static inline void durable_write_lock(durable_rwlock* lock) { (void)pthread_rwlock_wrlock(lock); }
static inline void durable_unlock(durable_rwlock* lock) { (void)pthread_rwlock_unlock(lock); }

#endif
