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
#include "stillpoint/typed_fields.h"

#ifdef __cplusplus
#include <type_traits>
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

typedef struct nvm_type {
    const char* name;
    size_t size_bytes;
    const nvm_field*
        fields; /* typed_fields.h; of several types, where nested ones are described with it: then each begins with its entry */
    size_t field_count;
    uint32_t id; /* by nvm_type_register */
} nvm_type;

/* Makes the type known: at most 47 bytes of name, 1024 types. A type may be described twice, if what both say agrees; the more complete
 * description counts. Not while another thread registers types. Errors: SP_E_INVALID_ARGUMENT, SP_E_OBJECT_TYPE (the name is taken by a
 * type with other fields). */
int nvm_type_register(nvm_type* type);

/* Describes a structure type, by its typedef name, and registers it before main. After the name come its fields:
 *     typedef NVM_STRUCT Node { NVM_PTR(struct Node) next; char data[32]; } Node;
 *     NVM_TYPE(Node, NVM_HAS_PTR(Node, next));
 * Bytes that are not described are data that tools cannot name, and that `stillpoint convert` cannot move: NVM_HAS_DATA describes them, and
 * NVM_IS_COMPLETE says that nothing is missing. A member of a union needs its tag: a union that has pointers and no tag cannot be
 * described, since the library could not know which member is there. */
#define NVM_TYPE(type_name, ...)                                                                                                           \
    NVM_DESCRIPTION static const nvm_field nvm_fields_of_##type_name[] = {NVM_BEGINS_TYPE(type_name), __VA_ARGS__};                        \
    NVM_REGISTERS(type_name, nvm_fields_of_##type_name)

/* Describes all of a structure type by what the compiler knows: `stillpoint cc --runtime=breeze`.
 *     NVM_AUTO_TYPE(Node);
 * Every pointer leads to an object, unless NVM_IS_VOLATILE names it. Where a union has pointers, NVM_TAGGED says for each member when it is
 * there. NVM_IS_PINNED, NVM_RENAMED and NVM_DEFAULT follow the name too. What cannot be described ends the compilation, with the name of
 * the field. */
#ifdef STILLPOINT_DESCRIBES_TYPES
#define NVM_AUTO_TYPE(type_name, ...)                                                                                                      \
    static const nvm_field nvm_hints_of_##type_name[] = {                                                                                  \
        NVM_BEGINS_TYPE(type_name), {#type_name, NVM_FIELD_BY_COMPILER, 0, 0, 0, "", 0, 0, 0, 0}, __VA_ARGS__};                            \
    NVM_REGISTERS(type_name, nvm_hints_of_##type_name);                                                                                    \
    __attribute__((used, section(NVM_SHAPES_SECTION))) static struct {                                                                     \
        const type_name* shape;                                                                                                            \
        nvm_type* type;                                                                                                                    \
    } nvm_shape_of_##type_name = {0, &nvm_type_of_##type_name}
#elif defined(__cplusplus)
#define NVM_AUTO_TYPE(type_name, ...)                                                                                                      \
    static_assert(sizeof(type_name) == 0,                                                                                                  \
                  "NVM_AUTO_TYPE needs `stillpoint c++ --runtime=breeze`; with this compiler write NVM_TYPE, and name the fields")
#else
#define NVM_AUTO_TYPE(type_name, ...)                                                                                                      \
    _Static_assert(sizeof(type_name) == 0,                                                                                                 \
                   "NVM_AUTO_TYPE needs `stillpoint cc --runtime=breeze`; with this compiler write NVM_TYPE, and name the fields")
#endif
/* As NVM_AUTO_TYPE for each of up to eight types. */
#define NVM_AUTO_TYPES(...) NVM_AUTO_NTH(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)(__VA_ARGS__)

#define NVM_DESCRIPTION __attribute__((used, section(NVM_TYPES_SECTION), aligned(16)))
#define NVM_BEGINS_TYPE(type_name)                                                                                                         \
    {#type_name, NVM_FIELD_TYPE, 0, 0, sizeof(type_name), "", 0, NVM_TYPE_MAGIC, (uint32_t)sizeof(nvm_field), 0}
#define NVM_REGISTERS(type_name, list)                                                                                                     \
    static nvm_type nvm_type_of_##type_name = {#type_name, sizeof(type_name), list, sizeof list / sizeof list[0], 0};                      \
    __attribute__((constructor)) static void nvm_register_##type_name(void) { (void)nvm_type_register(&nvm_type_of_##type_name); }         \
    struct nvm_ignored_semicolon_##type_name
#define NVM_AUTO_NTH(a, b, c, d, e, f, g, h, n, ...) NVM_AUTO_##n
#define NVM_AUTO_1(a) NVM_AUTO_TYPE(a)
#define NVM_AUTO_2(a, ...)                                                                                                                 \
    NVM_AUTO_TYPE(a);                                                                                                                      \
    NVM_AUTO_1(__VA_ARGS__)
#define NVM_AUTO_3(a, ...)                                                                                                                 \
    NVM_AUTO_TYPE(a);                                                                                                                      \
    NVM_AUTO_2(__VA_ARGS__)
#define NVM_AUTO_4(a, ...)                                                                                                                 \
    NVM_AUTO_TYPE(a);                                                                                                                      \
    NVM_AUTO_3(__VA_ARGS__)
#define NVM_AUTO_5(a, ...)                                                                                                                 \
    NVM_AUTO_TYPE(a);                                                                                                                      \
    NVM_AUTO_4(__VA_ARGS__)
#define NVM_AUTO_6(a, ...)                                                                                                                 \
    NVM_AUTO_TYPE(a);                                                                                                                      \
    NVM_AUTO_5(__VA_ARGS__)
#define NVM_AUTO_7(a, ...)                                                                                                                 \
    NVM_AUTO_TYPE(a);                                                                                                                      \
    NVM_AUTO_6(__VA_ARGS__)
#define NVM_AUTO_8(a, ...)                                                                                                                 \
    NVM_AUTO_TYPE(a);                                                                                                                      \
    NVM_AUTO_7(__VA_ARGS__)

#ifdef __cplusplus
#define NVM_MEMBER(type_name, member) (reinterpret_cast<type_name*>(0)->member)
#else
#define NVM_MEMBER(type_name, member) (((type_name*)0)->member)
#endif
#define NVM_SIZEOF(type_name, member) sizeof NVM_MEMBER(type_name, member)
#define NVM_ELEMENTS(type_name, member, element) (NVM_SIZEOF(type_name, member) / sizeof(element))
/* A pointer, or an array of pointers. */
#define NVM_HAS_PTR(type_name, member)                                                                                                     \
    {#member, NVM_FIELD_POINTER, 0, offsetof(type_name, member), NVM_ELEMENTS(type_name, member, void*), "", 0, 0, 0, 0}
/* An nvm_weak, or an array of them. */
#define NVM_HAS_WEAK(type_name, member)                                                                                                    \
    {#member, NVM_FIELD_WEAK, 0, offsetof(type_name, member), NVM_ELEMENTS(type_name, member, nvm_weak), "", 0, 0, 0, 0}
/* A structure, or an array of structures, of a type that has been described before. */
#define NVM_HAS_STRUCT(type_name, member, nested_name)                                                                                     \
    {#member, NVM_FIELD_STRUCT, 0, offsetof(type_name, member), NVM_ELEMENTS(type_name, member, nested_name), #nested_name, 0, 0, 0, 0}
/* Numbers, characters or other bytes without pointers, or an array of them; no bit field. */
#define NVM_HAS_DATA(type_name, member)                                                                                                    \
    {#member,                                                                                                                              \
     NVM_FIELD_DATA,                                                                                                                       \
     0,                                                                                                                                    \
     offsetof(type_name, member),                                                                                                          \
     NVM_SIZEOF(type_name, member) / NVM_DATA_SIZE(type_name, member),                                                                     \
     "",                                                                                                                                   \
     0,                                                                                                                                    \
     0,                                                                                                                                    \
     (uint32_t)NVM_DATA_SIZE(type_name, member),                                                                                           \
     NVM_DATA_ENCODING(type_name, member)}
/* The size and the encoding of one value of a member, for NVM_HAS_DATA. */
#ifdef __cplusplus
extern "C++" {
template <class T>
constexpr uint32_t nvm_encoding_of() noexcept
{
    if (std::is_same<T, char>::value) {
        return NVM_DATA_CHARACTER;
    }
    if (std::is_same<T, bool>::value) {
        return NVM_DATA_BOOL;
    }
    if (std::is_enum<T>::value) {
        return NVM_DATA_ENUM_UNSIGNED;
    }
    return std::is_floating_point<T>::value ? NVM_DATA_FLOAT
           : !std::is_integral<T>::value    ? NVM_DATA_BYTES
           : std::is_signed<T>::value       ? NVM_DATA_SIGNED
                                            : NVM_DATA_UNSIGNED;
}
}
#define NVM_VALUE_TYPE(type_name, member)                                                                                                  \
    std::remove_cv<std::remove_all_extents<std::remove_reference<decltype(NVM_MEMBER(type_name, member))>::type>::type>::type
#define NVM_DATA_SIZE(type_name, member) sizeof(NVM_VALUE_TYPE(type_name, member))
#define NVM_DATA_ENCODING(type_name, member) nvm_encoding_of<NVM_VALUE_TYPE(type_name, member)>()
#else
/* An array is chosen by the pointer that it becomes; one of arrays is bytes. */
#define NVM_BY_VALUE(type_name, member, other, integer, real, character, boolean)                                                          \
    _Generic(NVM_MEMBER(type_name, member),                                                                                                \
        char: character,                                                                                                                   \
        char*: character,                                                                                                                  \
        _Bool: boolean,                                                                                                                    \
        _Bool*: boolean,                                                                                                                   \
        signed char: integer(signed char, NVM_DATA_SIGNED),                                                                                \
        signed char*: integer(signed char, NVM_DATA_SIGNED),                                                                               \
        unsigned char: integer(unsigned char, NVM_DATA_UNSIGNED),                                                                          \
        unsigned char*: integer(unsigned char, NVM_DATA_UNSIGNED),                                                                         \
        short: integer(short, NVM_DATA_SIGNED),                                                                                            \
        short*: integer(short, NVM_DATA_SIGNED),                                                                                           \
        unsigned short: integer(unsigned short, NVM_DATA_UNSIGNED),                                                                        \
        unsigned short*: integer(unsigned short, NVM_DATA_UNSIGNED),                                                                       \
        int: integer(int, NVM_DATA_SIGNED),                                                                                                \
        int*: integer(int, NVM_DATA_SIGNED),                                                                                               \
        unsigned: integer(unsigned, NVM_DATA_UNSIGNED),                                                                                    \
        unsigned*: integer(unsigned, NVM_DATA_UNSIGNED),                                                                                   \
        long: integer(long, NVM_DATA_SIGNED),                                                                                              \
        long*: integer(long, NVM_DATA_SIGNED),                                                                                             \
        unsigned long: integer(unsigned long, NVM_DATA_UNSIGNED),                                                                          \
        unsigned long*: integer(unsigned long, NVM_DATA_UNSIGNED),                                                                         \
        long long: integer(long long, NVM_DATA_SIGNED),                                                                                    \
        long long*: integer(long long, NVM_DATA_SIGNED),                                                                                   \
        unsigned long long: integer(unsigned long long, NVM_DATA_UNSIGNED),                                                                \
        unsigned long long*: integer(unsigned long long, NVM_DATA_UNSIGNED),                                                               \
        float: real(float),                                                                                                                \
        float*: real(float),                                                                                                               \
        double: real(double),                                                                                                              \
        double*: real(double),                                                                                                             \
        default: other)
#define NVM_SIZE_OF_INTEGER(type, encoding) sizeof(type)
#define NVM_ENCODING_OF_INTEGER(type, encoding) encoding
#define NVM_ENCODING_OF_REAL(type) NVM_DATA_FLOAT
#define NVM_DATA_SIZE(type_name, member)                                                                                                   \
    NVM_BY_VALUE(type_name, member, NVM_SIZEOF(type_name, member), NVM_SIZE_OF_INTEGER, sizeof, sizeof(char), sizeof(_Bool))
#define NVM_DATA_ENCODING(type_name, member)                                                                                               \
    NVM_BY_VALUE(type_name, member, NVM_DATA_BYTES, NVM_ENCODING_OF_INTEGER, NVM_ENCODING_OF_REAL, NVM_DATA_CHARACTER, NVM_DATA_BOOL)
#endif

/* The last member is an array without a size, of pointers or of bytes: objects may have any size from sizeof on. */
#define NVM_HAS_PTR_TAIL(type_name, member) {#member, NVM_FIELD_POINTER, 0, offsetof(type_name, member), 0, "", 0, 0, 0, 0}
#define NVM_HAS_TAIL(type_name, member) {#member, NVM_FIELD_TAIL, 0, offsetof(type_name, member), 0, "", 0, 0, 1, NVM_DATA_BYTES}
/* Objects of the type are roots: for data that has pointers which no type describes. */
#define NVM_IS_PINNED {"pinned", NVM_FIELD_PINNED, 0, 0, 0, "", 0, 0, 0, 0}
/* All fields are described: other bytes are padding. */
#define NVM_IS_COMPLETE {"complete", NVM_FIELD_COMPLETE, 0, 0, 0, "", 0, 0, 0, 0}
/* A pointer in a union, there while the integer member `tag` has the value. */
#define NVM_HAS_PTR_IF(type_name, member, tag, value)                                                                                      \
    {#member,                                                                                                                              \
     NVM_FIELD_POINTER,                                                                                                                    \
     (uint32_t)NVM_SIZEOF(type_name, tag),                                                                                                 \
     offsetof(type_name, member),                                                                                                          \
     NVM_ELEMENTS(type_name, member, void*),                                                                                               \
     "",                                                                                                                                   \
     offsetof(type_name, tag),                                                                                                             \
     (uint64_t)(value),                                                                                                                    \
     0,                                                                                                                                    \
     0}
/* With NVM_AUTO_TYPE: the member, of any type, is there while the integer member `tag` has the value. Members of an array are named by its
 * first element: NVM_TAGGED(Node, slots[0].leaf, slots[0].kind, 1). */
#define NVM_TAGGED(type_name, member, tag, value)                                                                                          \
    {#member,                                                                                                                              \
     NVM_FIELD_TAGGED,                                                                                                                     \
     (uint32_t)NVM_SIZEOF(type_name, tag),                                                                                                 \
     offsetof(type_name, member),                                                                                                          \
     0,                                                                                                                                    \
     "",                                                                                                                                   \
     offsetof(type_name, tag),                                                                                                             \
     (uint64_t)(value),                                                                                                                    \
     0,                                                                                                                                    \
     0}
/* With NVM_AUTO_TYPE: a pointer to memory that ends with the process, or to a function. It is not followed, and a program must not read it
 * before it has written it in this run. */
#define NVM_IS_VOLATILE(type_name, member) {#member, NVM_FIELD_VOLATILE, 0, offsetof(type_name, member), 0, "", 0, 0, 0, 0}
/* For `stillpoint convert`: the member was called `old_name`. */
#define NVM_RENAMED(type_name, member, old_name) {#member, NVM_FIELD_RENAMED, 0, offsetof(type_name, member), 0, #old_name, 0, 0, 0, 0}
/* For `stillpoint convert`: objects in which the integer member is new get this value there. */
#define NVM_DEFAULT(type_name, member, value)                                                                                              \
    {#member, NVM_FIELD_DEFAULT, 0, offsetof(type_name, member), 0, "", 0, (uint64_t)(value), 0, 0}

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
 * SP_E_POOL_CORRUPT (not for single objects: they are kept), SP_E_OBJECT_TYPE (a type that this program has registered has other fields in
 * the pool: the message names both), SP_E_WINDOW_TAKEN (base_address was given and is taken), SP_E_NO_MEMORY, SP_E_UNSUPPORTED (also with
 * STILLPOINT_DAMAGED=read-only or older-epoch in the environment, and no STILLPOINT_POOL that it is for), SP_E_IO. */
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
/* As nvm_tx_commit, but does not wait for the disk: a pool on a file has the transaction durably once nvm_wait_durable has returned. Locks
 * may be released before that. What other threads commit on top of it is never durable without it; no other process may be told of it. */
int nvm_tx_commit_early(NVM_POOL* pool);
/* Everything that any thread has committed before the call is durable on return; threads that wait share a sync. Errors: SP_E_NOT_OPEN;
 * SP_E_IO, SP_E_NO_SPACE, SP_E_POOL_READ_ONLY, as those of nvm_tx_commit. */
int nvm_wait_durable(NVM_POOL* pool);
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
