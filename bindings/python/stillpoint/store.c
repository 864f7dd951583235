#include "cells.h"

#include <string.h>

#include "stillpoint/stillpoint.h"

enum { INLINE_BYTES = 8, MAGIC = 0x79505053 /* "SPPy" */, FORMAT = 1, REFERENCE = 'r' };
/* The root "stillpoint.python". */
typedef struct {
    uint32_t magic;
    uint32_t format;
    sppy_header* left_over;
    sppy_dict* names;
} store;

static store* opened;

/* ---- Checks ---- */

static int is_block(const void* block, uint64_t bytes)
{
    /* sp_usable_size ends the program at an address of the pool where no block begins. */
    const int may_be = (uintptr_t)block % 8 == 0 && (sp_pool_default() == NULL || stillpoint_is_persistent(block));
    return may_be && bytes != 0 && sp_usable_size(block) >= bytes;
}

static uint64_t bytes_of_kind(uint32_t kind)
{
    switch (kind) {
    case SPPY_DICT:
        return sizeof(sppy_dict);
    case SPPY_LIST:
    case SPPY_DEQUE:
        return sizeof(sppy_sequence);
    case SPPY_ARRAY:
        return sizeof(sppy_array);
    default:
        return 0;
    }
}

static int is_array(const sppy_array* array)
{
    return array->dimensions <= SPPY_DIMENSIONS && memchr(array->dtype, '\0', SPPY_DTYPE_BYTES) != NULL &&
           is_block(array->data, array->size_bytes == 0 ? 1 : array->size_bytes);
}

static int is_dict(const sppy_dict* dict)
{
    return dict->count <= dict->used && dict->used <= dict->capacity && dict->capacity <= SPPY_COUNT_MAX &&
           (dict->capacity & (dict->capacity - 1)) == 0 &&
           (dict->capacity == 0 || (is_block(dict->entries, dict->capacity * sizeof(sppy_entry)) &&
                                    is_block(dict->slots, dict->capacity * 2 * sizeof(uint32_t))));
}

static int is_sequence(const sppy_sequence* sequence)
{
    return sequence->count <= sequence->capacity && sequence->capacity <= SPPY_COUNT_MAX &&
           (sequence->capacity & (sequence->capacity - 1)) == 0 &&
           (sequence->capacity == 0 ||
            (sequence->first < sequence->capacity && is_block(sequence->cells, sequence->capacity * sizeof(sppy_cell))));
}

static int is_container(const sppy_header* header)
{
    if (!is_block(header, sizeof *header) || header->magic != MAGIC || bytes_of_kind(header->kind) == 0 ||
        !is_block(header, bytes_of_kind(header->kind))) {
        return 0;
    }
    switch (header->kind) {
    case SPPY_DICT:
        return is_dict((const sppy_dict*)header);
    case SPPY_ARRAY:
        return is_array((const sppy_array*)header);
    default:
        return is_sequence((const sppy_sequence*)header);
    }
}

int sppy_kind(uint64_t address, uint32_t* kind)
{
    const sppy_header* const header = (const sppy_header*)(uintptr_t)address;
    if (!is_container(header)) {
        return SPPY_DAMAGED;
    }
    *kind = header->kind;
    return SP_OK;
}

/* ---- Containers that no container refers to ---- */

static void link_left_over(sppy_header* header)
{
    header->before = NULL;
    header->next = opened->left_over;
    if (header->next != NULL) {
        header->next->before = header;
    }
    opened->left_over = header;
}

static int unlink_left_over(sppy_header* header)
{
    if ((header->next != NULL && !is_container(header->next)) || (header->before != NULL && !is_container(header->before)) ||
        (header->before == NULL && opened->left_over != header)) {
        return SPPY_DAMAGED;
    }
    if (header->next != NULL) {
        header->next->before = header->before;
    }
    if (header->before != NULL) {
        header->before->next = header->next;
    } else {
        opened->left_over = header->next;
    }
    header->next = header->before = NULL;
    return SP_OK;
}

static int refer_to(uint64_t address)
{
    sppy_header* const header = (sppy_header*)(uintptr_t)address;
    if (!is_container(header)) {
        return SPPY_DAMAGED;
    }
    if (header->parents == 0 && unlink_left_over(header) != SP_OK) {
        return SPPY_DAMAGED;
    }
    header->parents++;
    return SP_OK;
}

/* *left_over: the container, if none refers to it any more; else as it was. */
static void refer_no_more(uint64_t address, uint64_t* left_over)
{
    sppy_header* const header = (sppy_header*)(uintptr_t)address;
    if (is_container(header) && header->parents != 0 && --header->parents == 0) {
        link_left_over(header);
        *left_over = address;
    }
}

/* ---- Cells ---- */

int sppy_read_cell(const sppy_cell* cell, sppy_value* value)
{
    value->tag = cell->tag;
    value->size_bytes = cell->size_bytes;
    value->bytes = cell->size_bytes <= INLINE_BYTES ? (const void*)&cell->word : (const void*)(uintptr_t)cell->word;
    return cell->size_bytes <= INLINE_BYTES || is_block(value->bytes, cell->size_bytes) ? SP_OK : SPPY_DAMAGED;
}

int sppy_fill_cell(sppy_cell* cell, const sppy_value* value)
{
    sppy_cell made = {value->tag, value->size_bytes, 0};
    if (value->size_bytes <= INLINE_BYTES) {
        memcpy(&made.word, value->bytes, value->size_bytes);
    } else {
        void* const block = sp_malloc(value->size_bytes);
        if (block == NULL) {
            return SPPY_NO_MEMORY;
        }
        memcpy(block, value->bytes, value->size_bytes);
        made.word = (uintptr_t)block;
    }
    if (made.tag == REFERENCE) {
        const int code = refer_to(made.word);
        if (code != SP_OK) {
            return code;
        }
    }
    *cell = made;
    return SP_OK;
}

void sppy_empty_cell(sppy_cell* cell, uint64_t* left_over)
{
    if (cell->tag == REFERENCE) {
        refer_no_more(cell->word, left_over);
    } else if (cell->size_bytes > INLINE_BYTES && is_block((void*)(uintptr_t)cell->word, cell->size_bytes)) {
        sp_free((void*)(uintptr_t)cell->word);
    }
    memset(cell, 0, sizeof *cell);
}

/* ---- Life ---- */

static int make(uint32_t kind, sppy_header** made)
{
    sppy_header* const header = sp_calloc(1, bytes_of_kind(kind));
    if (header == NULL) {
        return SPPY_NO_MEMORY;
    }
    header->magic = MAGIC;
    header->kind = kind;
    *made = header;
    return SP_OK;
}

int sppy_make(uint32_t kind, uint64_t* address)
{
    sppy_header* header = NULL;
    const int code = make(kind, &header);
    if (code == SP_OK) {
        link_left_over(header);
        *address = (uintptr_t)header;
    }
    return code;
}

int sppy_make_array(const char* dtype, uint64_t dimensions, const uint64_t* shape, uint64_t size_bytes, uint64_t* address)
{
    void* const data = sp_calloc(1, size_bytes == 0 ? 1 : size_bytes);
    const int code = data == NULL ? SPPY_NO_MEMORY : sppy_make(SPPY_ARRAY, address);
    if (code != SP_OK) {
        sp_free(data);
        return code;
    }
    sppy_array* const array = (sppy_array*)(uintptr_t)*address;
    array->size_bytes = size_bytes;
    array->dimensions = dimensions;
    memcpy(array->shape, shape, dimensions * sizeof *shape);
    strncpy(array->dtype, dtype, SPPY_DTYPE_BYTES - 1);
    array->data = data;
    return SP_OK;
}

/* Frees one; containers that it alone referred to are left over. */
static void free_container(sppy_header* header)
{
    uint64_t ignored = 0;
    if (header->kind == SPPY_DICT) {
        sppy_dict* const dict = (sppy_dict*)header;
        for (uint64_t i = 0; i < dict->used; ++i) {
            sppy_empty_cell(&dict->entries[i].value, &ignored);
            sppy_empty_cell(&dict->entries[i].key, &ignored);
        }
        sp_free(dict->entries);
        sp_free(dict->slots);
    } else if (header->kind == SPPY_ARRAY) {
        sp_free(((sppy_array*)header)->data);
    } else {
        sppy_sequence* const sequence = (sppy_sequence*)header;
        for (uint64_t i = 0; i < sequence->count; ++i) {
            sppy_empty_cell(sppy_cell_at(sequence, i), &ignored);
        }
        sp_free(sequence->cells);
    }
    header->magic = 0;
    sp_free(header);
}

int sppy_release(uint64_t address, uint64_t* left_over_before)
{
    sppy_header* const header = (sppy_header*)(uintptr_t)address;
    if (!is_container(header)) {
        return SPPY_DAMAGED;
    }
    if (header->parents != 0) {
        return SPPY_MISSING;
    }
    const int code = unlink_left_over(header);
    if (code == SP_OK) {
        *left_over_before = (uintptr_t)opened->left_over;
        free_container(header);
    }
    return code;
}

uint64_t sppy_left_over(uint64_t after)
{
    return (uintptr_t)(after == 0 ? opened->left_over : ((const sppy_header*)(uintptr_t)after)->next);
}

uint64_t sppy_live_blocks(void)
{
    sp_heap_statistics figures;
    return sp_heap_stats(&figures) == SP_OK ? figures.live_blocks : 0;
}

int sppy_open(sppy_dict** names)
{
    opened = sp_root("stillpoint.python", sizeof(store));
    if (opened == NULL) {
        return SPPY_NO_MEMORY;
    }
    if (opened->magic == 0) {
        sppy_header* made = NULL;
        if (make(SPPY_DICT, &made) != SP_OK) {
            return SPPY_NO_MEMORY;
        }
        made->parents = 1;
        *opened = (store){MAGIC, FORMAT, NULL, (sppy_dict*)made};
    }
    if (opened->magic != MAGIC || opened->format != FORMAT || !is_container(&opened->names->header) ||
        opened->names->header.kind != SPPY_DICT) {
        return SPPY_DAMAGED;
    }
    while (opened->left_over != NULL) {
        uint64_t ignored = 0;
        const int code = is_container(opened->left_over) ? sppy_release((uintptr_t)opened->left_over, &ignored) : SPPY_DAMAGED;
        if (code != SP_OK) {
            return SPPY_DAMAGED;
        }
    }
    *names = opened->names;
    return SP_OK;
}
