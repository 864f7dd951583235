#ifndef STILLPOINT_STILLPOINT_H
#define STILLPOINT_STILLPOINT_H
/* Stillpoint: memory of a multi-threaded program that survives a crash.
 *
 * C and C++. Link with -lstillpoint, run under `stillpoint run` (or call sp_open first).
 * Without a pool every function works on ordinary memory: the program runs volatile.
 *
 * Words: a FASE (failure-atomic section) lasts from a thread's outermost lock acquire to the
 * matching release, or from sp_fase_begin to sp_fase_end. With the engine respct it lasts from one restart point to the
 * next (respct.h); with pronto it is an operation (pronto.h) or lies between sp_fase_begin and sp_fase_end, and locks do
 * not delimit one; with spht it is a transaction (spht.h). With nvthreads locks delimit it, and each is durable by itself: "epoch"
 * below is then every FASE up to one moment. Stillpoint sees only locks that are taken by libc's functions, not locks that the program
 * implements itself.
 * Durable memory may be written only inside a FASE; it may be read
 * anywhere. After a crash it holds the state at the end of one epoch: every FASE of that epoch and of earlier ones
 * whole, and no part of a FASE of a later one. See docs/guide/guarantees.md.
 *
 * Unless a function says otherwise: any thread may call it, it never calls malloc, and it
 * returns SP_OK (0) or an sp_error. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stillpoint/error.h"
#include "stillpoint/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The window of durable addresses ------------------------------------------------ */

/* Every durable address has this value in its bits 40 and up: one window of 1 TiB, where neither
 * address space randomisation nor the address sanitizer puts anything. The thread sanitizer
 * accepts program memory in few places only, and gets a window of its own: pools made under it
 * cannot be opened without it, nor the reverse. */
#define SP_WINDOW_SHIFT 40
#if defined(__SANITIZE_THREAD__)
#define SP_WINDOW_INDEX ((uintptr_t)0x58)
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SP_WINDOW_INDEX ((uintptr_t)0x58)
#else
#define SP_WINDOW_INDEX ((uintptr_t)0x48)
#endif
#else
#define SP_WINDOW_INDEX ((uintptr_t)0x48)
#endif

/* True if `address` lies in the window of durable memory: a shift and a compare. */
static inline bool stillpoint_is_persistent(const void* address) { return ((uintptr_t)address >> SP_WINDOW_SHIFT) == SP_WINDOW_INDEX; }

/* ---- Opening ------------------------------------------------------------------------- */

/* Opens (or creates) the pool at `path` for this process and recovers it. `stillpoint run`
 * does this before main; call it only in a program that is started without it, before its
 * first durable allocation and before it starts threads. `options` is NULL or text of the
 * form "interval_ms=50 tracker=mprotect"; the names are those of `stillpoint run --help`.
 * Errors: SP_E_ALREADY_OPEN; each SP_E_POOL_*; SP_E_WINDOW_TAKEN; SP_E_NO_SPACE; SP_E_IO;
 * SP_E_UNSUPPORTED; SP_E_INVALID_ARGUMENT (an unknown option). */
int sp_open(const char* path, const char* options);

/* Takes a last checkpoint and closes the pool; durable memory may not be touched afterwards.
 * A normal exit does this by itself. Errors: SP_E_NOT_OPEN, SP_E_INSIDE_FASE, SP_E_IO. */
int sp_close(void);

/* The state in which this process found its durable memory. */
typedef enum sp_start {
    SP_START_VOLATILE = 0, /* no pool: nothing will survive */
    SP_START_FRESH = 1,    /* a new pool */
    SP_START_CLEAN = 2,    /* an earlier run's memory, as it was at its normal exit */
    SP_START_CRASHED = 3   /* an earlier run's memory, as it was at its last durable epoch */
} sp_start;

sp_start sp_start_kind(void);

/* The last error message of the calling thread, or "" if there was none: what failed, with
 * file, offset and system error, and what to do next. Every call of these headers that fails
 * sets it; one that succeeds leaves it as it is. Valid until the thread's next call. */
const char* sp_last_error(void);

/* ---- Durable memory ------------------------------------------------------------------ */
/* As malloc, calloc, realloc, aligned_alloc and free, on durable memory. Each call is a FASE
 * of its own or part of the caller's. After a crash no block is leaked: blocks that were not
 * allocated in the recovered epoch are free. Failure: NULL with errno ENOMEM; sp_last_error()
 * tells a full disk from a pool at its maximum. Memory from sp_malloc holds old bytes.
 * A named object (sp_root) that is freed loses its name; one that is reallocated keeps it, with the new size.
 * Alignment: 16 bytes, that of max_align_t; sp_aligned_alloc gives more (EINVAL: it is not a power
 * of two up to 64 KiB). An object that must not share its cache lines needs sp_aligned_alloc(64, ...). */
void* sp_malloc(size_t size_bytes);
void* sp_calloc(size_t count, size_t size_bytes);
void* sp_realloc(void* block, size_t size_bytes);
void* sp_aligned_alloc(size_t alignment_bytes, size_t size_bytes); /* power of two, <= 64 KiB */
void sp_free(void* block);                                         /* NULL is allowed */
size_t sp_usable_size(const void* block);

/* Allocates an object that the directory of handles names, or finds it again.
 * The first call for `handle` returns `size_bytes` of zeroes; later calls, in this run or
 * after a restart, return the same object. `handle`: 1 to 79 bytes. Alignment: 16 bytes.
 * NULL and errno: EINVAL (bad name, or another size than the object has), ENOMEM, ENOSPC
 * (directory full). Cost: a hash look-up and a lock. */
void* sp_root(const char* handle, size_t size_bytes);

/* Finds a named object without creating it: NULL with errno ENOENT if there is none (EINVAL: no
 * name can be that long). Its size goes to *size_bytes where that is not NULL. */
void* sp_root_find(const char* handle, size_t* size_bytes);

/* Frees the named object and forgets its name. Errors: SP_E_HANDLE_MISSING, SP_E_INVALID_ARGUMENT. */
int sp_root_delete(const char* handle);

/* sp_root of a type: `struct shop* s = SP_ROOT(struct shop, "shop");`. GNU C and C++, inside functions. The handle is a string literal of
 * at most 79 bytes, without escapes and "%". It leaves a record in the program, by which `stillpoint run` and `stillpoint dump` know the
 * object's type: where the program has debug information (-g) its fields are compared at each start with those that the pool has, and
 * a difference is refused with the field's name (SP_E_LAYOUT; docs/guide/layouts.md). In a template the type needs a name. */
#ifndef __cplusplus
#define SP_ROOT(type, handle)                                                                                                              \
    __extension__({                                                                                                                        \
        static const struct sp_root_record sp_root_record_                                                                                 \
            __attribute__((section("sp_root_types"), used SP_PERSISTENT_RETAINED_)) = {handle, #type, sizeof(type)};                       \
        (type*)sp_root(handle, sizeof(type));                                                                                              \
    })
#else
/* A variable of an inline function cannot lie in a section with one of an ordinary function. */
#define SP_ROOT(type, handle)                                                                                                              \
    __extension__({                                                                                                                        \
        __asm__ volatile(".pushsection sp_root_types,\"aR\",%%progbits\n\t.balign 8\n661:\t.asciz \"" handle "\"\n\t.org 661b+80\n\t"      \
                         ".asciz \"" #type "\"\n\t.org 661b+248\n\t.quad %c0\n\t.popsection"                                               \
                         :                                                                                                                 \
                         : "i"(sizeof(type)));                                                                                             \
        static_cast<type*>(sp_root(handle, sizeof(type)));                                                                                 \
    })
#endif
struct sp_root_record {
    char handle[80];
    char type[168];
    uint64_t size_bytes;
};

/* A durable global variable: `SP_PERSISTENT int counter;` or `SP_PERSISTENT struct t table =
 * { 1 };` in the program or a shared library it links. It keeps its address and its
 * initial value until the first checkpoint that finds it changed; after a restart it has the
 * recovered value before main starts. Same rule as all durable memory: write inside a FASE.
 * Plain data only: no pointers to volatile memory, no C++ constructors.
 * Cost: about 0.1 ms of stop time for each MiB of such variables.
 *
 * A variable is found again by its name and size, whatever the program's file is called and
 * however it was built. The name comes from the file's symbols: in a program that is stripped
 * and built again it is gone, and the start is refused. SP_PERSISTENT_VARIABLE(type, name)
 * carries name and type in the program itself, strip or not:
 *     SP_PERSISTENT_VARIABLE(int, counter) = 3;
 *     SP_PERSISTENT_VARIABLE(double[8], rates);
 * At file or namespace scope. For one source file alone: SP_PERSISTENT_STATIC in C, an
 * unnamed namespace in C++. */
#define SP_PERSISTENT __attribute__((section("sp_persistent"), used))

#define SP_PERSISTENT_VARIABLE(type, name)                                                                                                 \
    extern __typeof__(type) name;                                                                                                          \
    SP_PERSISTENT_RECORD_(type, name);                                                                                                     \
    SP_PERSISTENT __typeof__(type) name
#ifndef __cplusplus
#define SP_PERSISTENT_STATIC(type, name)                                                                                                   \
    static __typeof__(type) name;                                                                                                          \
    SP_PERSISTENT_RECORD_(type, name);                                                                                                     \
    static SP_PERSISTENT __typeof__(type) name
#endif

/* The record that SP_PERSISTENT_VARIABLE leaves in the program. */
struct sp_persistent_record {
    const volatile void* address;
    uint64_t size_bytes;
    uint64_t alignment_bytes;
    const char* name;
    const char* type;
    const char* file;
};
#if defined(__has_attribute)
#if __has_attribute(retain)
#define SP_PERSISTENT_RETAINED_ , retain
#endif
#endif
#ifndef SP_PERSISTENT_RETAINED_
#define SP_PERSISTENT_RETAINED_
#endif
#define SP_PERSISTENT_RECORD_(type, name)                                                                                                  \
    static const struct sp_persistent_record sp_persistent_record_##name __attribute__((                                                   \
        section("sp_persistent_names"), used SP_PERSISTENT_RETAINED_)) = {&name, sizeof(type), __alignof__(type), #name, #type, __FILE__}

/* ---- Layouts that change ----------------------------------------------------------------- */

/* Which data a program keeps: a name and a number of its own, at file scope. A new pool takes them, and so does one that has none; a
 * pool whose data have another name, or another number and no step from it, is refused at the start (SP_E_LAYOUT, exit code 65).
 *     SP_LAYOUT("inventory", 3);
 *     SP_LAYOUT_STEP(2, 3, add_prices);      int add_prices(void): 0 for done
 * A step makes data of the second number of those of the first. It is called once, with all that it stores and the new number as one
 * failure-atomic unit: inside a section, or with the engine spht inside a transaction that the step's own ones join. A crash in
 * the middle leaves the older data; any result but 0 ends the process (exit code 65) and leaves them, too. Several steps follow one
 * another, each a unit. They run before the program's first use of durable memory returns: in sp_open, in the first call of this
 * library, or, where there are SP_PERSISTENT variables, before main and before constructors of the program: a step uses durable memory and
 * plain functions. Not with the engine pronto, whose unit is one operation, nor where threads are processes (SP_E_UNSUPPORTED).
 * name: 1 to 47 letters, digits, ".", "_", "-". */
#define SP_LAYOUT(name, number) SP_LAYOUT_RECORD_(__COUNTER__, name, 0, number, 0)
#define SP_LAYOUT_STEP(from_number, to_number, function) SP_LAYOUT_RECORD_(__COUNTER__, 0, from_number, to_number, function)

/* The record that they leave in the program. */
struct sp_layout_record {
    uint64_t record_bytes;
    const char* name; /* a null pointer: a step */
    uint64_t from;    /* of a step */
    uint64_t number;
    int (*step)(void);
};
#define SP_LAYOUT_RECORD_(id, ...) SP_LAYOUT_NAMED_RECORD_(id, __VA_ARGS__)
#define SP_LAYOUT_NAMED_RECORD_(id, name, from_number, to_number, function)                                                                \
    static const struct sp_layout_record sp_layout_record_##id __attribute__((section("sp_layouts"), used SP_PERSISTENT_RETAINED_)) = {    \
        sizeof(struct sp_layout_record), name, from_number, to_number, function}

/* ---- Failure-atomic sections ---------------------------------------------------------- */

/* Delimit a FASE where the program takes no lock. Nest with locks. */
void sp_fase_begin(void);
void sp_fase_end(void);

/* True: what a thread stores between sp_fase_begin and sp_fase_end survives a crash as a whole or not at all, also where code stores it
 * that knows nothing of Stillpoint, such as containers of the standard library. So it is with the engines pmthreads, nvthreads and pronto,
 * and without a pool. False: the engine wants to be told of each store (respct, spht). */
bool sp_sections_are_atomic(void);

/* Allow a checkpoint between the two calls although the thread holds locks: around a sleep, a wait for another
 * thread, or a call that may block. Stores of the FASE before sp_fase_pause may become durable without its
 * stores after sp_fase_resume: pause where that is consistent, and store nothing durable in between. Locks that
 * were acquired before stay held and are not released in between; they must not lie in durable memory, where they
 * would be held after a restart. Without effect outside a FASE; nest. Cost: that of a lock and an unlock. */
void sp_fase_pause(void);
void sp_fase_resume(void);

/* Takes a lock (mutex, rwlock, spinlock) out of the accounting: holding it is not a FASE.
 * For locks that guard nothing durable and are held for long. Call it while the lock is
 * free. Ends when the lock is destroyed by its function (pthread_mutex_destroy and its like), or its durable memory
 * is freed: call one of them before the memory holds another lock. At most 1024 locks: then SP_E_NO_MEMORY. */
int sp_lock_ignore(const void* lock);

/* ---- Epochs and acknowledgement -------------------------------------------------------- */

/* The running epoch: a FASE of this thread that has ended belongs to it or an earlier one.
 * Epochs are numbered from 1 and never reused, not even after a crash. 0: no pool. */
uint64_t sp_epoch(void);

/* The newest durable epoch: all FASEs of it and of earlier ones survive. 0: none yet. */
uint64_t sp_durable_epoch(void);

/* Waits until `epoch` is durable. timeout_ms: -1 waits forever. The call does not hurry the
 * checkpoint: use sp_checkpoint for that. To acknowledge a FASE: end it, read sp_epoch(),
 * wait for that epoch, reply. Errors: SP_E_TIMED_OUT, SP_E_INSIDE_FASE, SP_E_NOT_OPEN,
 * SP_E_POOL_READ_ONLY (a write failed, or damaged=read-only: it will never be durable), SP_E_DETACHED. */
int sp_wait_durable(uint64_t epoch, int64_t timeout_ms);

/* How safe an epoch is to be, of a pool with a replica (option replica). */
typedef enum sp_level {
    SP_LEVEL_LOCAL = 0, /* durable on this machine */
    SP_LEVEL_REMOTE = 1 /* durable on this machine and in the replica: it survives the loss of the machine */
} sp_level;

/* As sp_wait_durable, until `epoch` is durable at that level. With replicate=async sp_wait_durable waits for SP_LEVEL_LOCAL, else
 * for both. A pool that lies in Ceph itself has every durable epoch at both levels. Errors as sp_wait_durable, and
 * SP_E_UNSUPPORTED (SP_LEVEL_REMOTE of a pool in a file without a replica), SP_E_INVALID_ARGUMENT (no such level). */
int sp_wait_durable_at(uint64_t epoch, sp_level level, int64_t timeout_ms);

/* Takes a checkpoint now and waits until it is durable. Errors as sp_wait_durable. */
int sp_checkpoint(void);

/* Copies the pool to a new file, as `stillpoint copy` does, while the other threads work: the copy has one consistent state, and
 * all that was durable when the call was made. It can be opened as a pool; `stillpoint check` verifies it. A call that was
 * interrupted leaves NEW_PATH.partial, from which the next one goes on. Cost: reads the pool's data twice or more; for the
 * last time the pool's own writes wait, up to 2 s. Errors: SP_E_POOL_EXISTS (new_path is taken), SP_E_NO_SPACE, SP_E_IO,
 * SP_E_POOL_LOCKED (this engine stores into the file itself on this medium: its writes cannot be held), SP_E_TIMED_OUT (five
 * times they would have had to wait for longer), SP_E_INSIDE_FASE, SP_E_NOT_OPEN, SP_E_DETACHED, SP_E_INVALID_ARGUMENT (NULL). */
int sp_copy(const char* new_path);

/* Copies only what has changed since `base_path`, a copy of this pool (sp_copy, `stillpoint copy`) or an earlier increment, to a new file,
 * an increment, as `stillpoint copy --incremental-since` does. `stillpoint restore COPY INCREMENT... NEW` makes the pool of that moment,
 * and verifies it; `stillpoint check` verifies an increment's own bytes. Any thread; the others work meanwhile. On return the increment is
 * durable, and has one consistent state, with all that was durable when the call was made; a crash leaves it whole or not at all, and
 * perhaps NEW_PATH.partial, which the next call writes from its start. The base is only read, and no program may have it open. Cost: as
 * sp_copy, reading a base that is a copy, and 8 bytes of memory for each page of the pool's file that is not zero; the file is as large as
 * what has changed, and 2 MiB for each GiB of data. Errors as sp_copy, and SP_E_POOL_MISSING (no base), SP_E_POOL_LOCKED (a program has the
 * base open, too), SP_E_INVALID_ARGUMENT (the base is of another pool, or of a later state: the pool was restored since), SP_E_NOT_A_POOL,
 * SP_E_POOL_CORRUPT, SP_E_POOL_VERSION (of the base), SP_E_NO_MEMORY. */
int sp_copy_since(const char* new_path, const char* base_path);

/* ---- Several pools ----------------------------------------------------------------------- */
/* The calls above act on the default pool of the process, the one of `stillpoint run` or sp_open. Further pools are
 * objects. Each has its own file, engine, heap, handles and epochs, and addresses of its own, where it is mapped in every
 * process that opens it. Durable memory of one pool may not point into another: they are not recovered to the same moment.
 *
 * Pools of engines that are durable on return (pronto) can be open beside each other, 16 at a time. An engine that
 * finds quiescent states by the program's locks (pmthreads, respct) needs the process for itself, and so does spht.
 * sp_free, sp_realloc and sp_usable_size find a block's pool by its address. SP_PERSISTENT variables belong to the
 * default pool. Sections (sp_fase_begin) are those of all pools of the process. */

typedef struct sp_pool sp_pool;

/* Opens (or creates) a pool beside those that are open; the default pool stays what it is. As sp_open, but it may be called
 * at any time, by any thread. It ends with sp_pool_close or, as the default one, with the process. NULL: sp_last_error() says why;
 * besides sp_open's reasons: its engine, or that of an open pool, needs the process for itself (SP_E_ALREADY_OPEN); its
 * addresses are taken by an open pool (SP_E_WINDOW_TAKEN): pools that sp_pool_open has made lie at random places, and rarely meet. */
sp_pool* sp_pool_open(const char* path, const char* options);

/* Takes a last checkpoint and closes the pool. No thread may use its memory afterwards, nor have chosen it (sp_pool_use).
 * Errors as sp_close. */
int sp_pool_close(sp_pool* pool);

/* The default pool; NULL: there is none. */
sp_pool* sp_pool_default(void);
/* The pool that the calling thread's calls without a pool act on: the one that it has chosen, or whose object it runs an operation
 * on; else the default one. NULL: there is none. */
sp_pool* sp_pool_current(void);
/* The open pool whose addresses `address` is one of; NULL: none. */
sp_pool* sp_pool_of(const void* address);

/* From here on the calling thread's calls without a pool act on that pool; NULL: on the default one. *before, where that is not
 * NULL, is the pool that the thread had chosen, or NULL. For code that calls the functions above through a library or an allocator.
 * An operation on a durable object (pronto.h) does this by itself. Errors: SP_E_NOT_OPEN (not an open pool; nothing changes). */
int sp_pool_use(sp_pool* pool, sp_pool** before);

/* The calls above, on that pool. Errors also: SP_E_NOT_OPEN, or NULL with EINVAL (not an open pool). Cost: a look at the open
 * pools more. */
sp_start sp_pool_start_kind(sp_pool* pool);
void* sp_pool_malloc(sp_pool* pool, size_t size_bytes);
void* sp_pool_calloc(sp_pool* pool, size_t count, size_t size_bytes);
void* sp_pool_aligned_alloc(sp_pool* pool, size_t alignment_bytes, size_t size_bytes);
void* sp_pool_root(sp_pool* pool, const char* handle, size_t size_bytes);
void* sp_pool_root_find(sp_pool* pool, const char* handle, size_t* size_bytes);
int sp_pool_root_delete(sp_pool* pool, const char* handle);
uint64_t sp_pool_epoch(sp_pool* pool);
uint64_t sp_pool_durable_epoch(sp_pool* pool);
int sp_pool_wait_durable(sp_pool* pool, uint64_t epoch, int64_t timeout_ms);
int sp_pool_checkpoint(sp_pool* pool);
int sp_pool_copy(sp_pool* pool, const char* new_path);
int sp_pool_copy_since(sp_pool* pool, const char* new_path, const char* base_path);

/* ---- Facts ------------------------------------------------------------------------------ */

typedef struct sp_heap_statistics {
    uint64_t heap_bytes;      /* bytes of the pool's present size that blocks can come from */
    uint64_t allocated_bytes; /* in live blocks, rounded up to their size classes */
    uint64_t free_bytes;      /* heap_bytes - allocated_bytes - the allocator's own tables */
    uint64_t live_blocks;
} sp_heap_statistics;

/* Walks the heap's tables; the figures are exact while no other thread allocates.
 * Errors: SP_E_NOT_OPEN, SP_E_INVALID_ARGUMENT (NULL). */
int sp_heap_stats(sp_heap_statistics* out);

/* Reads one of the figures that `stillpoint stats` shows, by its name there ("stop_ns_p99"): docs/guide/statistics.md
 * lists them. Cost: a search of some 40 names and a load. Errors: SP_E_NOT_OPEN; SP_E_INVALID_ARGUMENT
 * (NULL, or an unknown name). */
int sp_statistic(const char* name, uint64_t* value);

/* The two calls above, on one pool. Errors also: SP_E_NOT_OPEN (not an open pool). */
int sp_pool_heap_stats(sp_pool* pool, sp_heap_statistics* out);
int sp_pool_statistic(sp_pool* pool, const char* name, uint64_t* value);

/* ---- Messages ----------------------------------------------------------------------------- */

typedef enum sp_log_level {
    SP_LOG_ERROR = 1,   /* durability is lost or refused, or the program misuses durable memory */
    SP_LOG_WARNING = 2, /* it works, but not as it seems to be meant */
    SP_LOG_INFO = 3,    /* how the pool was opened, and the like */
    SP_LOG_DEBUG = 4    /* each checkpoint */
} sp_log_level;

/* `line`: one message, whole, without a newline, terminated and without control characters; it is valid during the call. */
typedef void (*sp_log_callback)(void* context, sp_log_level level, const char* line, size_t length);

/* Gives the library's messages to `callback` instead of standard error; NULL: to standard error again. The option log_level says which
 * ones. The callback runs on a thread of the library, one call at a time, in the order of the messages, with none of the library's locks
 * held: it may take locks and call any function. It must return soon: 32 messages wait for it at most, and further ones go to standard
 * error. Errors go there as well in any case, since the process may end right after one. When this call returns, the callback
 * of before is not running and is not called any more, unless it makes this call itself. Messages of the opening by `stillpoint run`
 * have been printed before main; a child made by fork prints its own. With or without a pool.
 * Errors: SP_E_NO_MEMORY; SP_E_UNSUPPORTED (nvthreads with threads=processes). */
int sp_set_log_callback(sp_log_callback callback, void* context);

/* "1.0.0": of the library, as STILLPOINT_VERSION_STRING is that of the headers. */
const char* sp_version(void);

#ifdef __cplusplus
}
#endif
#endif
