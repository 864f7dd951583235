/* The shim of the layer pmdk [NVHooks Figure 4.4]: the hooks by libpmemobj, and the functions of pmdk-hooks.h. */

#include "pmdk-hooks.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char layout_name[] = "stillpoint-pmdk";

static PMEMobjpool* open_pool;
static uint64_t pool_uuid;
/* The pool's first byte: what pmemobj_direct looks up for each pointer where there may be several pools. */
static uintptr_t pool_base;

/* ---- Hooks --------------------------------------------------------------------------------------------------- */

bool nvhooks_is_nvm(const void* address);
void* nvhooks_to_absolute_ptr(uintptr_t pointer);
void nvhooks_pre_nvm_write(void* address, size_t size_bytes);

/* Functions of their own, so that this file's uses are inlined although the program may replace the hooks. */
static inline bool is_relative(const void* pointer) { return (uintptr_t)pointer >> 48 == 1; }
static inline void* absolute(uintptr_t pointer) { return (void*)(pool_base + (pointer & (PMDK_POINTER_BIT - 1))); }
static inline void* direct(const void* pointer) { return is_relative(pointer) ? absolute((uintptr_t)pointer) : (void*)(uintptr_t)pointer; }

bool nvhooks_is_nvm(const void* address) { return is_relative(address); }

void* nvhooks_to_absolute_ptr(uintptr_t pointer) { return absolute(pointer); }

/* The store that follows cannot be held back, and it must not happen without its old bytes in the log. */
static void die(const char* what)
{
    fprintf(stderr, "stillpoint: layer pmdk: %s: %s; the transaction will be undone when the pool is opened again\n", what,
            pmemobj_errormsg());
    abort();
}

void nvhooks_pre_nvm_write(void* address, size_t size_bytes)
{
    switch (pmemobj_tx_stage()) {
    case TX_STAGE_WORK:
        if (pmemobj_tx_add_range_direct(address, size_bytes) != 0) {
            die("the old bytes of a durable store cannot be logged");
        }
        break;
    case TX_STAGE_NONE: break; /* as with libpmemobj itself: a store outside of every transaction is not atomic */
    default: die("a durable store in a transaction that was aborted");
    }
}

/* ---- Pools and transactions ---------------------------------------------------------------------------------- */

/* libpmemobj leaves half a pool where the process dies while it makes one, and refuses that ever after. So it gets its name
 * when it is whole. */
static PMEMobjpool* make_pool(const char* path, size_t size_bytes)
{
    char unnamed[4096];
    const int length = snprintf(unnamed, sizeof unnamed, "%s.%ld.new", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof unnamed) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    PMEMobjpool* pool = pmemobj_create(unnamed, layout_name, size_bytes, 0600);
    if (pool != NULL && link(unnamed, path) != 0) {
        const int code = errno;
        pmemobj_close(pool);
        pool = NULL;
        errno = code;
    }
    const int code = errno;
    (void)unlink(unnamed);
    errno = code;
    return pool;
}

PMEMobjpool* pmdk_open(const char* path, size_t size_bytes)
{
    if (open_pool != NULL) {
        errno = EBUSY;
        return NULL;
    }
    PMEMobjpool* pool = access(path, F_OK) == 0 ? pmemobj_open(path, layout_name) : make_pool(path, size_bytes);
    if (pool == NULL) {
        return NULL;
    }
    pool_base = (uintptr_t)pool;
    /* libpmemobj tells a pool's number with an object only, and before there is a root there may be none. */
    const PMEMoid root = pmemobj_root(pool, pmemobj_root_size(pool) != 0 ? pmemobj_root_size(pool) : sizeof(uint64_t));
    if (OID_IS_NULL(root)) {
        pmemobj_close(pool);
        return NULL;
    }
    pool_uuid = root.pool_uuid_lo;
    open_pool = pool;
    return pool;
}

PMEMobjpool* pmdk_pool(void) { return open_pool; }

void pmdk_close(void)
{
    if (open_pool != NULL) {
        pmemobj_close(open_pool);
        open_pool = NULL;
        pool_base = 0;
    }
}

void* pmdk_root(size_t size_bytes)
{
    const size_t present = open_pool == NULL ? 0 : pmemobj_root_size(open_pool);
    if (present == 0 || (present != size_bytes && present != sizeof(uint64_t))) {
        errno = EINVAL;
        return NULL;
    }
    return pmdk_pointer(pmemobj_root(open_pool, size_bytes));
}

void* pmdk_alloc(size_t size_bytes)
{
    if (pmemobj_tx_stage() != TX_STAGE_WORK) {
        errno = EINVAL;
        return NULL;
    }
    return pmdk_pointer(pmemobj_tx_alloc(size_bytes, 0));
}

int pmdk_free(void* block)
{
    if (block == NULL) {
        return 0;
    }
    return pmemobj_tx_stage() == TX_STAGE_WORK ? pmemobj_tx_free(pmdk_oid(block)) : EINVAL;
}

int pmdk_tx_begin(void) { return pmemobj_tx_begin(open_pool, NULL, TX_PARAM_NONE); }

int pmdk_tx_end(void)
{
    if (pmemobj_tx_stage() == TX_STAGE_WORK) {
        pmemobj_tx_commit();
    }
    return pmemobj_tx_end();
}

void* pmdk_direct(const void* relative) { return direct(relative); }

PMEMoid pmdk_oid(const void* relative)
{
    const PMEMoid object = {pool_uuid, (uintptr_t)relative & (PMDK_POINTER_BIT - 1)};
    return relative != NULL ? object : OID_NULL;
}

int pmdk_rwlock_read(PMEMrwlock* lock) { return pmemobj_rwlock_rdlock(open_pool, direct(lock)); }
int pmdk_rwlock_write(PMEMrwlock* lock) { return pmemobj_rwlock_wrlock(open_pool, direct(lock)); }
int pmdk_rwlock_unlock(PMEMrwlock* lock) { return pmemobj_rwlock_unlock(open_pool, direct(lock)); }
