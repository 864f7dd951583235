#ifndef SPHT_HOOKS_H
#define SPHT_HOOKS_H
/* The wrapper header of the layer spht: transactions whose bodies are plain C or C++, over libstillpoint with the engine `spht`. The
 * runtime's own API is sp_tm_run (stillpoint/itm.h) and stillpoint.h; in C++20 also stillpoint::spht::atomically(body), below.
 * docs/guide/spht.md, "Plain C through the compiler", has the rules.
 *
 * Needs the names of POSIX: -std=gnu11, or _POSIX_C_SOURCE=200809L with -std=c11.
 * Durability: a transaction is durable when it returns, at the pool's level. */

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include <stillpoint/itm.h>
#include <stillpoint/spht.h>
#include <stillpoint/stillpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The operations that every layer has (layers/README.md) -----------------------------------------------------
 *
 * A FASE that begins and ends in the middle of functions has no body that could be cloned. So it is an irrevocable transaction with plain
 * stores: one at a time, and for each a walk over the pool's page tables. Write new programs with sp_tm_run. */

#define DURABLE_LAYER "spht"
typedef pthread_rwlock_t durable_rwlock;

/* Under `stillpoint run --pool` the pool is open already, and `path` is not examined. A pool of libstillpoint grows by
 * itself: `size_bytes` is not needed. */
static inline int durable_open(const char* path, size_t size_bytes)
{
    (void)size_bytes;
    if (sp_start_kind() != SP_START_VOLATILE) {
        return 0;
    }
    return sp_open(path, "engine=spht") == SP_OK ? 0 : EIO;
}
static inline void durable_close(void) { (void)sp_close(); }
static inline const char* durable_error(void) { return sp_last_error(); }
static inline void* durable_root(size_t size_bytes) { return sp_root("durable-root", size_bytes); }
static inline void* durable_allocate(size_t size_bytes)
{
    sp_spht_transaction* const running = sp_spht_current();
    return running != NULL ? sp_spht_malloc(running, size_bytes) : sp_malloc(size_bytes);
}
static inline void durable_release(void* block)
{
    sp_spht_transaction* const running = sp_spht_current();
    if (running != NULL) {
        (void)sp_spht_free(running, block);
    } else {
        sp_free(block);
    }
}
/* Where it cannot begin (no pool, or a kernel before 6.7), the end says so. */
static inline void durable_fase_begin(void) { (void)sp_spht_begin(SP_SPHT_IRREVOCABLE | SP_SPHT_PLAIN_STORES, NULL); }
static inline int durable_fase_end(void) { return sp_spht_commit(sp_spht_current()) == SP_OK ? 0 : EIO; }
static inline void durable_read_lock(durable_rwlock* lock) { (void)pthread_rwlock_rdlock(lock); }
static inline void durable_write_lock(durable_rwlock* lock) { (void)pthread_rwlock_wrlock(lock); }
static inline void durable_unlock(durable_rwlock* lock) { (void)pthread_rwlock_unlock(lock); }

#ifdef __cplusplus
}

#if __cplusplus >= 202002L
#include <optional>
#include <type_traits>
#include <utility>

#include <stillpoint/spht.hpp>

namespace stillpoint::spht {

/// A body and what it has returned, for atomically().
template <class Body, class Value>
struct body_and_value {
    Body* body;
    std::optional<Value> value = std::nullopt;

    static void run(void* self)
    {
        auto* const own = static_cast<body_and_value*>(self);
        own->value.emplace((*own->body)());
    }
};
template <class Body>
struct body_and_value<Body, void> {
    Body* body;

    static void run(void* self) { (*static_cast<body_and_value*>(self)->body)(); }
};

/// Runs body() as a transaction and returns what it returns; the body reads and writes as usual. `flags`: as for sp_tm_run, whose rules
/// hold. Throws error: cancelled, too large, or not durable. An exception that leaves the body rolls everything back and passes on.
template <class Body, class Value = std::invoke_result_t<Body&>>
Value atomically(Body&& body, unsigned flags = 0)
{
    using Run = body_and_value<std::remove_reference_t<Body>, Value>;
    Run run{&body};
    if (const int code = sp_tm_run(&Run::run, &run, flags); code != SP_OK) {
        throw error(code);
    }
    if constexpr (!std::is_void_v<Value>) {
        return std::move(*run.value);
    }
}

}  // namespace stillpoint::spht
#endif
#endif
#endif
