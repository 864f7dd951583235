/* Tokyo Cabinet's ordered database in a pool, and the heap that the library gets there: see tcdurable.h. */
#include "tcdurable.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <stillpoint/stillpoint.h>

static _Thread_local bool is_inside __attribute__((tls_model("initial-exec")));

void tcdurable_begin(void) { is_inside = true; }
void tcdurable_end(void) { is_inside = false; }

/* ---- The next malloc(): libc's, or that of a library which was loaded before it ---- */

/* dlsym() may ask for memory before it has found any. */
static char first_bytes[4096] __attribute__((aligned(16)));
static size_t first_used;

static bool is_first(const void* block) { return (uintptr_t)block - (uintptr_t)first_bytes < sizeof first_bytes; }

static void* allocate_first(size_t size)
{
    const size_t at = first_used;
    if (size > sizeof first_bytes - at) {
        return NULL;
    }
    first_used = (at + size + 15) & ~(size_t)15;
    return first_bytes + at;
}

typedef struct {
    void* (*allocate)(size_t);
    void* (*allocate_zeroed)(size_t, size_t);
    void* (*resize)(void*, size_t);
    void (*release)(void*);
    size_t (*usable)(void*);
} Heap;

/* NULL: it is being looked for. */
static const Heap* next_heap(void)
{
    static Heap next;
    static bool is_searching;
    static bool is_known;
    if (!is_known) {
        if (is_searching) {
            return NULL;
        }
        is_searching = true;
        *(void**)&next.allocate = dlsym(RTLD_NEXT, "malloc");
        *(void**)&next.allocate_zeroed = dlsym(RTLD_NEXT, "calloc");
        *(void**)&next.resize = dlsym(RTLD_NEXT, "realloc");
        *(void**)&next.release = dlsym(RTLD_NEXT, "free");
        *(void**)&next.usable = dlsym(RTLD_NEXT, "malloc_usable_size");
        is_known = true;
    }
    return &next;
}

/* ---- What the program and its libraries call ---- */

void* malloc(size_t size)
{
    if (is_inside) {
        return sp_malloc(size);
    }
    const Heap* const next = next_heap();
    return next != NULL ? next->allocate(size) : allocate_first(size);
}

void* calloc(size_t count, size_t size)
{
    if (is_inside) {
        return sp_calloc(count, size);
    }
    const Heap* const next = next_heap();
    return next != NULL ? next->allocate_zeroed(count, size) : allocate_first(count * size);
}

void free(void* block)
{
    if (stillpoint_is_persistent(block)) {
        sp_free(block);
    } else if (block != NULL && !is_first(block)) {
        next_heap()->release(block);
    }
}

/* A block stays where it is: in the pool or outside, wherever the caller is. */
void* realloc(void* block, size_t size)
{
    if (block == NULL) {
        return malloc(size);
    }
    if (stillpoint_is_persistent(block)) {
        return sp_realloc(block, size);
    }
    if (!is_first(block)) {
        return next_heap()->resize(block, size);
    }
    void* const moved = malloc(size);
    if (moved != NULL) {
        const size_t most = (size_t)(first_bytes + sizeof first_bytes - (char*)block);
        memcpy(moved, block, size < most ? size : most);
    }
    return moved;
}

size_t malloc_usable_size(void* block)
{
    if (stillpoint_is_persistent(block)) {
        return sp_usable_size(block);
    }
    return block == NULL || is_first(block) ? 0 : next_heap()->usable(block);
}

/* ---- The database ---- */

TCNDB* tcdurable_open(const char* name)
{
    char handle[128] = "tokyocabinet/";
    if (strlen(name) >= sizeof handle - strlen(handle)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    strcat(handle, name);
    TCNDB** const root = (TCNDB**)sp_root(handle, sizeof *root);
    if (root == NULL) {
        return NULL;
    }
    if (*root == NULL) {
        sp_fase_begin();
        tcdurable_begin();
        TCNDB* const made = tcndbnew();
        tcdurable_end();
        *root = made;
        sp_fase_end();
    } else {
        /* Code lies elsewhere in each run. */
        sp_fase_begin();
        (*root)->tree->cmp = tccmplexical;
        sp_fase_end();
    }
    return *root;
}
