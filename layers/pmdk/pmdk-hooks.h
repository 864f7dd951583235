#ifndef PMDK_HOOKS_H
#define PMDK_HOOKS_H
/* The wrapper header of the layer pmdk [NVHooks Figure 4.4]: what a program still says itself where the compiler
 * does the rest. Pools, transactions, allocation, the root; with relative pointers. libpmemobj's own calls
 * (pmemobj_tx_begin, pmemobj_tx_commit, TX_BEGIN, ...) may be used beside these.
 *
 * A relative pointer is (1 << 48) | offset. Instrumented code follows one like any pointer; code that the compiler
 * did not instrument must have it translated (pmdk_direct, or a description of the function that is called).
 *
 * One pool at a time for each process. Functions may be called by any thread unless they say otherwise.
 * Durability: libpmemobj's. A committed transaction survives the death of the process always, and the death of the
 * machine where the pool lies on persistent memory or on a file system that libpmemobj syncs. */

#include <errno.h>
#include <libpmemobj.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PMDK_POINTER_BIT ((uintptr_t)1 << 48)

/* Opens the pool at `path` and recovers it; creates it with `size_bytes` (at least PMEMOBJ_MIN_POOL) where there is
 * none. NULL: failed, errno and pmemobj_errormsg() say why. Not to be called by two threads at a time. */
PMEMobjpool* pmdk_open(const char* path, size_t size_bytes);

/* The pool that is open, or NULL. */
PMEMobjpool* pmdk_pool(void);

/* Closes it. No thread may be in a transaction or follow a relative pointer afterwards. */
void pmdk_close(void);

/* The root object: zeroed when it is first asked for, the same one ever after. Outside of transactions.
 * NULL: no memory, or it was made with another size (errno EINVAL). */
void* pmdk_root(size_t size_bytes);

/* Allocates and frees as part of the running transaction: undone if it does not commit. The block holds old bytes.
 * pmdk_alloc returns NULL with errno EINVAL outside of a transaction, ENOMEM where the pool is full; the
 * transaction is then aborted, and must be ended without further writes. pmdk_free: 0 or an errno. */
void* pmdk_alloc(size_t size_bytes);
int pmdk_free(void* block);

/* Begins a transaction (or one nested in it) and ends it. pmdk_tx_end commits unless the transaction was aborted.
 * Both return 0 or an errno: of the begin, or for which the transaction was aborted. */
int pmdk_tx_begin(void);
int pmdk_tx_end(void);

/* Between relative pointers, addresses and object identifiers. Null stays null. */
void* pmdk_direct(const void* relative);
PMEMoid pmdk_oid(const void* relative);
static inline void* pmdk_pointer(PMEMoid object) { return OID_IS_NULL(object) ? NULL : (void*)(object.off | PMDK_POINTER_BIT); }

/* libpmemobj's locks in durable memory: all bytes zero is a free lock, and every lock is free after a restart. */
int pmdk_rwlock_read(PMEMrwlock* lock);
int pmdk_rwlock_write(PMEMrwlock* lock);
int pmdk_rwlock_unlock(PMEMrwlock* lock);

/* ---- The operations that every layer has (layers/README.md) ----------------------------------------------------- */

#define DURABLE_LAYER "pmdk"
typedef PMEMrwlock durable_rwlock;

static inline int durable_open(const char* path, size_t size_bytes)
{
    return pmdk_open(path, size_bytes) != NULL ? 0 : (errno != 0 ? errno : EINVAL);
}
static inline void durable_close(void) { pmdk_close(); }
static inline const char* durable_error(void) { return pmemobj_errormsg(); }
static inline void* durable_root(size_t size_bytes) { return pmdk_root(size_bytes); }
static inline void* durable_allocate(size_t size_bytes) { return pmdk_alloc(size_bytes); }
static inline void durable_release(void* block) { (void)pmdk_free(block); }
static inline void durable_fase_begin(void) { (void)pmdk_tx_begin(); }
static inline int durable_fase_end(void) { return pmdk_tx_end(); }
static inline void durable_read_lock(durable_rwlock* lock) { (void)pmdk_rwlock_read(lock); }
static inline void durable_write_lock(durable_rwlock* lock) { (void)pmdk_rwlock_write(lock); }
static inline void durable_unlock(durable_rwlock* lock) { (void)pmdk_rwlock_unlock(lock); }

#ifdef __cplusplus
}
#endif
#endif
