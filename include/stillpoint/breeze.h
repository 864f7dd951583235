#ifndef STILLPOINT_BREEZE_H
#define STILLPOINT_BREEZE_H
/* Engine breeze: transactions in C on typed objects with ordinary pointers [Breeze, Memaripour and Swanson; ICCD 2018, and chapter 3 of
 * Memaripour's thesis]. The names are the paper's.
 *
 * A pool is a file of objects. Each object has a type, which says where its pointers are; so a pool may be mapped at another address than
 * before (its pointers are rewritten), and objects that nothing points to are freed. Several pools can be open at once, also two copies of
 * one.
 *
 * Between nvm_tx_begin and nvm_tx_commit a thread changes objects by ordinary stores, each announced by nvm_log before it is made. A crash,
 * or nvm_tx_abort, leaves all stores of a transaction or none. Other threads see the stores at once: keep them apart by the locks of your
 * program, held until the commit has returned.
 *
 * Unless a function says otherwise: any thread may call it, and it returns SP_OK (0) or an sp_error whose text is sp_last_error(); a
 * function that returns a pointer returns NULL instead. */

#include <stddef.h>
#include <stdint.h>

#include "stillpoint/stillpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nvm_pool NVM_POOL;

/* ---- Types ------------------------------------------------------------------------------- */

/* Table 3.1: a structure that lies in pools, and a pointer in it. Both are plain C; NVM_TYPE says the same to the library. */
#define NVM_STRUCT struct
#define NVM_PTR(type) type*

/* A pointer that does not keep its object alive. Written by nvm_weak_set, read by nvm_weak_get. */
typedef struct nvm_weak {
    void* object;
    uint64_t version; /* the object's: another object at the same place has another one */
} nvm_weak;

enum nvm_field_kind {
    NVM_FIELD_POINTER = 1, /* to an object of the same pool, or into one */
    NVM_FIELD_WEAK = 2,    /* an nvm_weak */
    NVM_FIELD_STRUCT = 3,  /* a structure with pointers of its own */
    NVM_FIELD_TAIL = 4,    /* the bytes from here to the object's end: no pointers */
    NVM_FIELD_PINNED = 5   /* no field: objects of the type live until nvm_free, whether something points to them or not */
};

/* One field that has pointers. */
typedef struct nvm_field {
    const char* name;
    uint32_t kind;
    uint32_t tag_bytes;             /* a member of a union: the size of its tag, 1, 2, 4 or 8; 0: the field is always there */
    size_t offset_bytes;
    size_t count;                   /* elements of an array; 0 with kind pointer: as many as reach the object's end */
    const struct nvm_type* nested;  /* kind structure */
    size_t tag_offset_bytes;
    uint64_t tag_value;             /* the field is there while the tag has this value */
} nvm_field;

typedef struct nvm_type {
    const char* name;
    size_t size_bytes;
    const nvm_field* fields;
    size_t field_count;
    uint32_t id; /* by nvm_type_register */
} nvm_type;

/* Makes the type known: at most 47 bytes of name, 1024 types. Types of the same name must have the same fields. Not while another
 * thread registers types. Errors: SP_E_INVALID_ARGUMENT, SP_E_OBJECT_TYPE (the name is taken by a type with other fields). */
int nvm_type_register(nvm_type* type);

/* Describes a structure type, by its typedef name, and registers it before main. After the name come its fields with pointers; all other
 * bytes are data:
 *     typedef NVM_STRUCT Node { NVM_PTR(struct Node) next; char data[32]; } Node;
 *     NVM_TYPE(Node, NVM_HAS_PTR(Node, next));
 * A member of a union needs its tag: a union that has pointers and no tag cannot be described, since the library could not know which
 * member is there. */
#define NVM_TYPE(type_name, ...)                                                                                                           \
    static const nvm_field nvm_fields_of_##type_name[] = {{0, 0, 0, 0, 0, 0, 0, 0}, __VA_ARGS__};                                          \
    static nvm_type nvm_type_of_##type_name = {#type_name, sizeof(type_name), nvm_fields_of_##type_name + 1,                               \
                                               sizeof nvm_fields_of_##type_name / sizeof nvm_fields_of_##type_name[0] - 1, 0};             \
    __attribute__((constructor)) static void nvm_register_##type_name(void) { (void)nvm_type_register(&nvm_type_of_##type_name); }         \
    struct nvm_ignored_semicolon_##type_name

#ifdef __cplusplus
#define NVM_SIZEOF(type_name, member) sizeof(type_name::member)
#else
#define NVM_SIZEOF(type_name, member) sizeof(((type_name*)0)->member)
#endif
#define NVM_ELEMENTS(type_name, member, element) (NVM_SIZEOF(type_name, member) / sizeof(element))
/* A pointer, or an array of pointers. */
#define NVM_HAS_PTR(type_name, member)                                                                                                     \
    {#member, NVM_FIELD_POINTER, 0, offsetof(type_name, member), NVM_ELEMENTS(type_name, member, void*), 0, 0, 0}
/* An nvm_weak, or an array of them. */
#define NVM_HAS_WEAK(type_name, member)                                                                                                    \
    {#member, NVM_FIELD_WEAK, 0, offsetof(type_name, member), NVM_ELEMENTS(type_name, member, nvm_weak), 0, 0, 0}
/* A structure, or an array of structures, of a type that NVM_TYPE has described before. */
#define NVM_HAS_STRUCT(type_name, member, nested_name)                                                                                     \
    {                                                                                                                                      \
        #member,                                                                                                                           \
        NVM_FIELD_STRUCT,                                                                                                                  \
        0,                                                                                                                                 \
        offsetof(type_name, member),                                                                                                       \
        NVM_ELEMENTS(type_name, member, nested_name),                                                                                      \
        &nvm_type_of_##nested_name,                                                                                                        \
        0,                                                                                                                                 \
        0}
/* The last member is an array without a size, of pointers or of bytes: objects may have any size from sizeof on. */
#define NVM_HAS_PTR_TAIL(type_name, member) {#member, NVM_FIELD_POINTER, 0, offsetof(type_name, member), 0, 0, 0, 0}
#define NVM_HAS_TAIL(type_name, member) {#member, NVM_FIELD_TAIL, 0, offsetof(type_name, member), 0, 0, 0, 0}
/* Objects of the type are roots: for data that has pointers which no type describes. */
#define NVM_IS_PINNED {"pinned", NVM_FIELD_PINNED, 0, 0, 0, 0, 0, 0}
/* A pointer in a union, there while the integer member `tag` has the value. */
#define NVM_HAS_PTR_IF(type_name, member, tag, value)                                                                                      \
    {#member,                                                                                                                              \
     NVM_FIELD_POINTER,                                                                                                                    \
     (uint32_t)NVM_SIZEOF(type_name, tag),                                                                                                 \
     offsetof(type_name, member),                                                                                                          \
     NVM_ELEMENTS(type_name, member, void*),                                                                                               \
     0,                                                                                                                                    \
     offsetof(type_name, tag),                                                                                                             \
     (uint64_t)(value)}

/* The number of a described type, positive; 0: it could not be registered. */
#define NVM_TYPE_ID(type_name) (nvm_type_of_##type_name.id)

/* ---- Pools ------------------------------------------------------------------------------- */

typedef struct nvm_options {
    const char* medium;     /* "dax", "file", "memory"; NULL: as STILLPOINT_MEDIUM says, else what the path gives */
    const char* durability; /* of a new pool: "power" or "process"; NULL: power, process where the path is memory */
    uintptr_t base_address; /* where to map the pool, a multiple of 2 MiB in the window of durable addresses; 0: where it lay last */
    unsigned threads; /* that scan the pool at opening; 0: one for each CPU, at most 8 */
    int collect; /* at opening: free what cannot be reached from the root, cycles too */
    int stays; /* SP_E_WINDOW_TAKEN where the pool cannot lie where it lay last: it has pointers that no type describes */
} nvm_options;

/* Creates the file, of at least 4 MiB, and opens it. The size of a pool does not change. `options` may be NULL.
 * Errors: SP_E_POOL_EXISTS, SP_E_NO_SPACE, SP_E_UNSUPPORTED, SP_E_INVALID_ARGUMENT, SP_E_IO. */
NVM_POOL* nvm_pool_create(const char* path, size_t size_bytes);
NVM_POOL* nvm_pool_create_with(const char* path, size_t size_bytes, const nvm_options* options);

/* Opens the file: undoes unfinished transactions, rewrites pointers where the pool cannot lie where it lay, and finds free memory. A crash
 * meanwhile does no harm. Errors: SP_E_POOL_MISSING, SP_E_POOL_LOCKED (another process, or this one, has it), SP_E_POOL_ENGINE,
 * SP_E_POOL_CORRUPT, SP_E_OBJECT_TYPE (a type that this program has registered has other fields in the pool: the message names both),
 * SP_E_WINDOW_TAKEN (base_address was given and is taken), SP_E_NO_MEMORY, SP_E_UNSUPPORTED, SP_E_IO. */
NVM_POOL* nvm_pool_open(const char* path);
NVM_POOL* nvm_pool_open_with(const char* path, const nvm_options* options);

/* Opens the file; where there is none, creates it with that size. Errors: those of nvm_pool_open and nvm_pool_create. */
NVM_POOL* nvm_pool_obtain(const char* path, size_t size_bytes);

/* Closes the pool; pools that are open when the program ends are closed then. Errors: SP_E_NOT_OPEN; SP_E_INSIDE_FASE (a transaction is
 * running). */
int nvm_pool_close(NVM_POOL* pool);

/* The open pool that the address lies in, or NULL. */
NVM_POOL* nvm_pool_of(const void* address);

/* The root pointer: objects that cannot be reached from it are dead. Inside a transaction. */
int nvm_pool_set_root(NVM_POOL* pool, const void* object);
void* nvm_pool_root(NVM_POOL* pool);
/* The root object; where there is none yet, a zeroed one is made, durable when this returns. Not by two threads at a time. Errors:
 * SP_E_OBJECT_TYPE (the root has another type or size, or the type is unknown), those of nvm_tx_begin, nvm_alloc and nvm_tx_commit. */
void* nvm_pool_obtain_root(NVM_POOL* pool, uint32_t type, size_t size_bytes);

/* ---- Objects ----------------------------------------------------------------------------- */

/* A zeroed object, inside a transaction; it is free again if the transaction does not commit. `size_bytes` is the type's size or a multiple
 * of it, an array; any size from it on where the type has a tail. Errors: SP_E_NO_TRANSACTION, SP_E_OBJECT_TYPE (the type is unknown, or
 * has other fields in the pool), SP_E_INVALID_ARGUMENT, SP_E_POOL_FULL. */
void* nvm_alloc(NVM_POOL* pool, uint32_t type, size_t size_bytes);

/* Frees an object that nothing points to, as the pool is within this transaction, when the transaction commits. Not necessary: such objects
 * are found by the collector. Errors: SP_E_NO_TRANSACTION, SP_E_OBJECT_REFUSED (the object is live), SP_E_INVALID_ARGUMENT (no object
 * begins there). */
int nvm_free(NVM_POOL* pool, void* object);

/* The type's number, its size and its reference count, applied as far as transactions have committed. Errors: SP_E_INVALID_ARGUMENT. */
typedef struct nvm_object_facts {
    uint32_t type;
    uint32_t references;
    size_t size_bytes;
    uint64_t version;
} nvm_object_facts;
int nvm_object(NVM_POOL* pool, const void* object, nvm_object_facts* facts);

/* The weak pointer gets an object, or NULL. Inside a transaction, if it lies in a pool. */
int nvm_weak_set(NVM_POOL* pool, nvm_weak* weak, const void* object);
/* The object of the weak pointer; NULL: that has been freed, or there was none. */
void* nvm_weak_get(NVM_POOL* pool, const nvm_weak* weak);

/* ---- Transactions ------------------------------------------------------------------------ */

/* Begins a transaction of the calling thread; inside one on the same pool, a part of it. Waits while all logs of the pool are in use.
 * Errors: SP_E_NOT_OPEN, SP_E_INVALID_ARGUMENT (the thread's transaction is on another pool), SP_E_DETACHED. */
int nvm_tx_begin(NVM_POOL* pool);
/* Ends it; the outermost one becomes durable. If it cannot, it is rolled back and an error returned: SP_E_NO_TRANSACTION;
 * SP_E_TRANSACTION_TOO_LARGE (its log was full); SP_E_NOT_DURABLE_ADDRESS (a pointer to memory outside of the pool; the message names
 * structure, field and the place in the code of the store); SP_E_OBJECT_REFUSED (a pointer to a freed object); SP_E_ABORTED (an inner one
 * was aborted). SP_E_IO, SP_E_NO_SPACE, SP_E_POOL_READ_ONLY: the transaction is done in memory and a crash may lose it; nothing becomes
 * durable in this run any more. */
int nvm_tx_commit(NVM_POOL* pool);
/* Rolls everything back; inside an inner transaction the outer ones too, when they end. Errors: SP_E_NO_TRANSACTION. */
int nvm_tx_abort(NVM_POOL* pool);

/* Before stores to [address, + size_bytes): keeps the old bytes, durably. Memory that is in no pool is ignored. After an error the bytes
 * must not be stored to; the transaction can only be rolled back. Errors: SP_E_NO_TRANSACTION, SP_E_TRANSACTION_TOO_LARGE,
 * SP_E_INVALID_ARGUMENT (bytes beyond an object, or of another pool than the transaction's), SP_E_OBJECT_REFUSED (a freed object).
 * Cost: one fence for bytes that this transaction has not logged yet; none for objects that it has allocated. */
int nvm_log(const void* address, size_t size_bytes);
/* Several places share one fence: as nvm_log, but the bytes must not be stored to before nvm_log_wait, or another nvm_log, has returned.
 * Errors: those of nvm_log. Cost: no fence. */
int nvm_log_ahead(const void* address, size_t size_bytes);
/* Everything that this thread's transaction has logged is durable on return. Cost: one fence, if something was logged ahead. */
void nvm_log_wait(void);
/* The place in the code of later calls of nvm_log by this thread, for messages; static text. */
int nvm_log_at(const void* address, size_t size_bytes, const char* file, int line);
/* Logs a place and stores to it: NVM_SET(node->next, other). */
#define NVM_SET(place, value) (nvm_log_at(&(place), sizeof(place), __FILE__, __LINE__) == SP_OK ? (void)((place) = (value)) : (void)0)

/* ---- Garbage ----------------------------------------------------------------------------- */

typedef struct nvm_collection {
    uint64_t objects_kept;
    uint64_t objects_freed;
    uint64_t bytes_freed;
    uint64_t longest_stop_ns; /* for which transactions were held at their begin */
} nvm_collection;

/* Waits until the reference counts have what was committed before the call, and what they make free is free. */
int nvm_drain(NVM_POOL* pool);
/* Frees every object that cannot be reached from the root, cycles too. Transactions run meanwhile, but for a short stop at the end. Not
 * inside a transaction. `result` may be NULL. Errors: SP_E_INSIDE_FASE, SP_E_POOL_CORRUPT (the pool has damaged objects, whose pointers
 * are unknown), SP_E_TIMED_OUT (a transaction did not end for 10 s), SP_E_NO_MEMORY. */
int nvm_collect(NVM_POOL* pool, nvm_collection* result);

typedef struct nvm_pool_facts {
    uintptr_t base_address;
    uint64_t generation; /* how many addresses the pool has had */
    uint64_t objects;
    uint64_t objects_bytes; /* with headers and rounding */
    uint64_t data_bytes;
    uint64_t damaged_objects; /* kept, and readable as far as they are; never freed */
    uint64_t transactions_undone; /* by the last opening */
    uint64_t pointers_rewritten; /* by the last opening */
    uint64_t opening_ns;
    uint64_t objects_collected; /* by reference counts, since the opening */
} nvm_pool_facts;
int nvm_facts(NVM_POOL* pool, nvm_pool_facts* facts);

#ifdef __cplusplus
}
#endif
#endif
