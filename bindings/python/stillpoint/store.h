/* The durable containers of the Python package: their bytes in the pool, and the operations on them. A caller is inside a section
 * (sp_fase_begin), and alone. Every pointer that is read from the pool is checked before it is followed. */
#ifndef STILLPOINT_PYTHON_STORE_H
#define STILLPOINT_PYTHON_STORE_H

#include <stdint.h>

enum { SPPY_DICT = 1, SPPY_LIST = 2, SPPY_DEQUE = 3, SPPY_ARRAY = 4 };
/* Results below zero; zero is success, SPPY_MISSING: no such key or place. */
enum { SPPY_MISSING = 1, SPPY_NO_MEMORY = -1, SPPY_DAMAGED = -2 };
enum { SPPY_DIMENSIONS = 8, SPPY_DTYPE_BYTES = 16 };

/* One value. `tag` is a letter of stillpoint/_values.py, 'r' for another container; 0: none. Up to 8 bytes lie in `word`, more in a block
 * that it points to. */
typedef struct sppy_cell {
    uint32_t tag;
    uint32_t size_bytes;
    uint64_t word;
} sppy_cell;

/* Every container begins with this. One that no container refers to is in the list of those that are freed when the program's last handle
 * goes, or at the next start. */
typedef struct sppy_header {
    uint32_t magic;
    uint32_t kind;
    uint64_t parents;
    struct sppy_header* next;
    struct sppy_header* before;
} sppy_header;

/* A ring of cells: list and deque. */
typedef struct sppy_sequence {
    sppy_header header;
    uint64_t count, capacity, first;
    sppy_cell* cells;
} sppy_sequence;

typedef struct sppy_entry {
    uint64_t hash;
    sppy_cell key, value;
} sppy_entry;

/* Entries in the order in which they came, and a table of their numbers plus one by hash. */
typedef struct sppy_dict {
    sppy_header header;
    uint64_t count, used, capacity;
    sppy_entry* entries;
    uint32_t* slots;
} sppy_dict;

typedef struct sppy_array {
    sppy_header header;
    uint64_t size_bytes, dimensions, shape[SPPY_DIMENSIONS];
    char dtype[SPPY_DTYPE_BYTES];
    void* data;
} sppy_array;

/* A value on its way into the pool or out of it; `bytes` of one that was read points into the pool, until the next change. */
typedef struct sppy_value {
    uint32_t tag;
    uint32_t size_bytes;
    const void* bytes;
} sppy_value;

int sppy_open(sppy_dict** names);                        /* finds or makes the dict of names; frees what the last run left over */
int sppy_make(uint32_t kind, uint64_t* address);         /* an empty dict, list or deque, which is left over until it is stored */
int sppy_make_array(const char* dtype, uint64_t dimensions, const uint64_t* shape, uint64_t size_bytes, uint64_t* address);
int sppy_kind(uint64_t address, uint32_t* kind);         /* checks that a container lies there */
/* Frees a container, unless one refers to it. Those to which it alone referred are left over then: they come before *left_over_before in
 * the list that sppy_left_over(0) begins. */
int sppy_release(uint64_t address, uint64_t* left_over_before);
uint64_t sppy_left_over(uint64_t after);
uint64_t sppy_live_blocks(void); /* of the pool's heap */

int sppy_dict_get(sppy_dict* dict, const sppy_value* key, sppy_value* value);
int sppy_dict_set(sppy_dict* dict, const sppy_value* key, const sppy_value* value, uint64_t* left_over);
int sppy_dict_delete(sppy_dict* dict, const sppy_value* key, uint64_t* left_over);
int sppy_dict_next(sppy_dict* dict, uint64_t* position, sppy_value* key, sppy_value* value);

int sppy_sequence_get(sppy_sequence* sequence, uint64_t index, sppy_value* value);
int sppy_sequence_set(sppy_sequence* sequence, uint64_t index, const sppy_value* value, uint64_t* left_over);
int sppy_sequence_insert(sppy_sequence* sequence, uint64_t index, const sppy_value* value);
int sppy_sequence_delete(sppy_sequence* sequence, uint64_t index, uint64_t* left_over);

#endif
