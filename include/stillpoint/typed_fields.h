#ifndef STILLPOINT_TYPED_FIELDS_H
#define STILLPOINT_TYPED_FIELDS_H
/* How a program describes the structures that lie in its pools. The descriptions are data without addresses, in the section
 * `stillpoint_types` of the program: the library reads them at start, and tools read them from the file without running it.
 *
 * The section holds arrays of nvm_field, one after the other, each at a multiple of 16. A type begins with an entry of kind
 * NVM_FIELD_TYPE; its fields follow. */

#include <stddef.h>
#include <stdint.h>

#define NVM_TYPES_SECTION "stillpoint_types"
/* Written by the compiler's plugin where it finds them: see NVM_AUTO_TYPE. */
#define NVM_SHAPES_SECTION "stillpoint_shapes"
#define NVM_NAME_BYTES 48
/* The entry that begins a type has it in `tag_value`. */
#define NVM_TYPE_MAGIC 0x3145505954564e53u

enum nvm_field_kind {
    NVM_FIELD_POINTER = 1,  /* to an object of the same pool, or into one */
    NVM_FIELD_WEAK = 2,     /* an nvm_weak */
    NVM_FIELD_STRUCT = 3,   /* a structure that is described as a type of its own */
    NVM_FIELD_TAIL = 4,     /* the bytes from here to the object's end: no pointers */
    NVM_FIELD_PINNED = 5,   /* no field: objects of the type live until they are freed, whether something points to them or not */
    NVM_FIELD_DATA = 6,     /* values without pointers */
    NVM_FIELD_COMPLETE = 7, /* no field: what no field describes is padding */
    /* In descriptions only, not in pools: */
    NVM_FIELD_TYPE = 8,     /* begins a type: its name; its size in `count` */
    NVM_FIELD_RENAMED = 9,  /* the field was called `other` before */
    NVM_FIELD_DEFAULT = 10, /* objects of an older program get `tag_value` in this field */
    NVM_FIELD_TAGGED = 11,  /* for the compiler: when the member is there */
    NVM_FIELD_VOLATILE = 12,    /* for the compiler: the address is of one run, and means nothing to the pool */
    NVM_FIELD_BY_COMPILER = 13  /* the compiler has not replaced it by a description yet */
};

enum nvm_encoding {
    NVM_DATA_BYTES = 0, /* anything: copied as it is */
    NVM_DATA_SIGNED = 1,
    NVM_DATA_UNSIGNED = 2,
    NVM_DATA_FLOAT = 3,
    NVM_DATA_CHARACTER = 4, /* of a text */
    NVM_DATA_BOOL = 5,
    NVM_DATA_ENUM_SIGNED = 6,
    NVM_DATA_ENUM_UNSIGNED = 7,
    NVM_DATA_BITS_SIGNED = 8, /* a bit field; the next byte of `encoding` is its first bit, from the byte at its offset on, then its bits */
    NVM_DATA_BITS_UNSIGNED = 9,
    NVM_DATA_ADDRESS = 10 /* of memory that ends with the process */
};

/* One field, or an entry that says something of a type. */
typedef struct nvm_field {
    char name[NVM_NAME_BYTES];
    uint32_t kind;
    uint32_t tag_bytes; /* a member of a union: the size of its tag, 1, 2, 4 or 8; 0: the field is always there */
    uint64_t offset_bytes;
    uint64_t count; /* elements of an array; 0 with kind pointer: as many as reach the object's end */
    char other[NVM_NAME_BYTES]; /* kind structure: the name of its type, which was described before */
    uint64_t tag_offset_bytes;
    uint64_t tag_value; /* the field is there while the tag has this value */
    uint32_t element_bytes; /* kinds data and tail: of one value; kind type: sizeof(nvm_field) */
    uint32_t encoding; /* kinds data and tail */
} nvm_field;

#endif
