/* See regions.h. What makes it durable is the layer's header and the lines that say durable_. */

#include DURABLE_HOOKS /* "undo-hooks.h", "nvthreads-hooks.h", "pmthreads-hooks.h", "pmdk-hooks.h" or "volatile-hooks.h" */

#include <errno.h>
#include <string.h>

#include "regions.h"

/* Apart from its page, so that a page has nothing but data, as in the paper. */
struct state {
    durable_rwlock lock;
    uint64_t begin;
    uint64_t length;
    uint64_t content;
};

/* Zeroed memory has no pages. */
struct regions {
    uint64_t pages;
    unsigned char* bytes;
    struct state* states;
};

static struct regions* regions;

static int make(size_t pages)
{
    durable_fase_begin();
    unsigned char* bytes = durable_allocate(pages * regions_page_bytes);
    struct state* states = durable_allocate(pages * sizeof *states);
    if (bytes != NULL && states != NULL) {
        memset(bytes, 0, pages * regions_page_bytes);
        memset(states, 0, pages * sizeof *states);
        regions->bytes = bytes;
        regions->states = states;
        regions->pages = pages;
    }
    const int aborted = durable_fase_end();
    return regions->pages == 0 ? ENOMEM : aborted;
}

int regions_open(const char* path, size_t size_bytes, size_t pages)
{
    const int failed = durable_open(path, size_bytes);
    if (failed != 0) {
        return failed;
    }
    regions = durable_root(sizeof *regions);
    if (regions == NULL) {
        return ENOMEM;
    }
    return regions->pages != 0 ? 0 : make(pages);
}

void regions_close(void) { durable_close(); }

int regions_write(size_t page, size_t begin, size_t length, int content)
{
    struct state* state = &regions->states[page];
    durable_write_lock(&state->lock);
    durable_fase_begin();
    memset(regions->bytes + page * regions_page_bytes + begin, content, length);
    state->begin = begin;
    state->length = length;
    state->content = (unsigned char)content;
    const int aborted = durable_fase_end();
    durable_unlock(&state->lock);
    return aborted;
}

int regions_put(size_t page, const void* bytes)
{
    struct state* state = &regions->states[page];
    durable_write_lock(&state->lock);
    durable_fase_begin();
    memcpy(regions->bytes + page * regions_page_bytes, bytes, regions_page_bytes);
    const int aborted = durable_fase_end();
    durable_unlock(&state->lock);
    return aborted;
}

const void* regions_bytes(void) { return regions->bytes; }

size_t regions_torn(void)
{
    size_t torn = 0;
    for (size_t page = 0; page < regions->pages; ++page) {
        const struct state* state = &regions->states[page];
        const unsigned char* bytes = regions->bytes + page * regions_page_bytes + state->begin;
        size_t same = 0;
        while (same < state->length && bytes[same] == state->content) {
            ++same;
        }
        torn += same != state->length;
    }
    return torn;
}

const char* regions_error(void) { return durable_error(); }
