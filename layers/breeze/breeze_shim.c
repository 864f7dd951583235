/* The shim of the layer breeze: the hook by nvm_log, and the functions of breeze-hooks.h. */

#include "breeze-hooks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Blocks of breeze_allocate: bytes whose pointers nothing knows. */
static const nvm_field block_fields[] = {{"pinned", NVM_FIELD_PINNED, 0, 0, 0, "", 0, 0, 0, 0},
                                         {"bytes", NVM_FIELD_TAIL, 0, 0, 0, "", 0, 0, 0, 0}};
static nvm_type block_type = {"durable-block", 1, block_fields, 2, 0};

static NVM_POOL* open_pool;
static uint64_t own_run;

void nvhooks_pre_nvm_write(void* address, size_t size_bytes);
void nvhooks_pre_nvm_write_gathered(void* address, size_t size_bytes);
void nvhooks_writes_gathered(void);

/* The store that follows cannot be held back, and it must not happen without its old bytes in the log. */
static void die(const char* what)
{
    fprintf(stderr, "stillpoint: layer breeze: %s: %s; the transaction will be undone when the pool is opened again\n", what,
            sp_last_error());
    abort();
}

void nvhooks_pre_nvm_write(void* address, size_t size_bytes)
{
    if (nvm_log(address, size_bytes) != SP_OK) {
        die("the old bytes of a durable store cannot be logged");
    }
}

void nvhooks_pre_nvm_write_gathered(void* address, size_t size_bytes)
{
    if (nvm_log_ahead(address, size_bytes) != SP_OK) {
        die("the old bytes of a durable store cannot be logged");
    }
}

void nvhooks_writes_gathered(void) { nvm_log_wait(); }

static int errno_of(int code)
{
    switch (code) {
    case SP_E_POOL_LOCKED:
    case SP_E_ALREADY_OPEN: return EBUSY;
    case SP_E_NO_SPACE:
    case SP_E_POOL_FULL:
    case SP_E_TRANSACTION_TOO_LARGE: return ENOSPC;
    case SP_E_WINDOW_TAKEN: return EEXIST;
    case SP_E_NO_MEMORY: return ENOMEM;
    default: return code == SP_OK ? 0 : EINVAL;
    }
}

static void begin_run(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    own_run = ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) ^ (uint64_t)getpid() << 40;
    own_run |= 2; /* never 0 or 1 */
}

int breeze_open(const char* path, size_t size_bytes)
{
    static const nvm_options options = {.stays = 1};
    if (open_pool != NULL) {
        return EBUSY;
    }
    begin_run();
    if (nvm_type_register(&block_type) != SP_OK) {
        return EINVAL;
    }
    open_pool = access(path, F_OK) == 0 ? nvm_pool_open_with(path, &options) : nvm_pool_create_with(path, size_bytes, &options);
    return open_pool != NULL ? 0 : EINVAL;
}

void breeze_close(void)
{
    (void)nvm_pool_close(open_pool);
    open_pool = NULL;
}

void* breeze_root(size_t size_bytes)
{
    void* root = nvm_pool_root(open_pool);
    nvm_object_facts facts;
    if (root != NULL) {
        return nvm_object(open_pool, root, &facts) == SP_OK && facts.size_bytes == size_bytes ? root : NULL;
    }
    if (nvm_tx_begin(open_pool) != SP_OK) {
        return NULL;
    }
    root = nvm_alloc(open_pool, block_type.id, size_bytes);
    if (root == NULL || nvm_pool_set_root(open_pool, root) != SP_OK) {
        (void)nvm_tx_abort(open_pool);
        return NULL;
    }
    return nvm_tx_commit(open_pool) == SP_OK ? root : NULL;
}

void* breeze_allocate(size_t size_bytes)
{
    void* const block = nvm_alloc(open_pool, block_type.id, size_bytes == 0 ? 1 : size_bytes);
    if (block == NULL) {
        errno = ENOMEM;
    }
    return block;
}

void breeze_release(void* block)
{
    if (block != NULL && nvm_free(open_pool, block) != SP_OK) {
        die("a block cannot be freed");
    }
}

void breeze_fase_begin(void)
{
    if (nvm_tx_begin(open_pool) != SP_OK) {
        die("no transaction can begin");
    }
}

int breeze_fase_end(void) { return errno_of(nvm_tx_commit(open_pool)); }

/* ---- Locks in durable memory ---------------------------------------------------------------------------------- */

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* A lock's bytes are of the run that has made it ready; another run makes it again. */
static pthread_rwlock_t* ready(breeze_rwlock* lock)
{
    if (__atomic_load_n(&lock->run, __ATOMIC_ACQUIRE) != own_run) {
        (void)pthread_mutex_lock(&making);
        if (__atomic_load_n(&lock->run, __ATOMIC_RELAXED) != own_run) {
            (void)pthread_rwlock_init(&lock->lock, NULL);
            __atomic_store_n(&lock->run, own_run, __ATOMIC_RELEASE);
        }
        (void)pthread_mutex_unlock(&making);
    }
    return &lock->lock;
}

void breeze_read_lock(breeze_rwlock* lock) { (void)pthread_rwlock_rdlock(ready(lock)); }
void breeze_write_lock(breeze_rwlock* lock) { (void)pthread_rwlock_wrlock(ready(lock)); }
void breeze_unlock(breeze_rwlock* lock) { (void)pthread_rwlock_unlock(&lock->lock); }
