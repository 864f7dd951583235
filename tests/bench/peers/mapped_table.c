/* A peer in plain C, which tests/bench/peer_test.py builds: a table and a ring in a mapped file, so that nothing is lost when the process
 * dies. Values have 8 bytes, and a word is stored whole. Its faults are chosen when it is built (macros) or when it is opened: the variable
 * PEER_FAULT. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stillpoint_peer.h"

#ifndef VERSION
#define VERSION STILLPOINT_PEER_VERSION
#endif
#ifndef NAME
#define NAME "mapped-table"
#endif

enum { slot_count = 1 << 14, ring_length = 1 << 16 };
enum { no_file = -1, other_value_size = -2, table_is_full = -3, ring_is_full = -4, bad_luck = -5, wrong_thread = -6 };

struct slot {
    _Atomic uint64_t is_used; /* 0: never was, 1: yes, 2: removed */
    uint64_t key;
    _Atomic uint64_t value;
};
struct table {
    struct slot slots[slot_count];
    uint64_t ring[ring_length];
    _Atomic uint64_t first, end;
};
struct store {
    struct table* table;
    pthread_mutex_t lock;
    uint64_t syncs;
};
struct thread {
    uint32_t number;
    pthread_t self;
};

#ifdef NEEDS_ANOTHER
int not_defined_anywhere(void);
static int (*const needed)(void) __attribute__((used)) = not_defined_anywhere;
#endif

#ifdef EXITS_WHEN_LOADED
__attribute__((constructor)) static void leave(void) { exit(EXITS_WHEN_LOADED); }
#endif

static const char* fault = "";
static int has_fault(const char* name) { return strcmp(fault, name) == 0; }

static void* sleep_forever(void* unused)
{
    for (;;) {
        sleep(1000);
    }
    return unused;
}

static void leak_threads(void)
{
    for (int i = 0; i < 4; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, sleep_forever, NULL) == 0) {
            pthread_detach(thread);
        }
    }
}

static int open_table(const struct stillpoint_peer_settings* settings, void** out)
{
    const char* chosen = getenv("PEER_FAULT");
    fault = chosen != NULL ? chosen : "";
    if (has_fault("open")) {
        return no_file;
    }
    if (settings->value_bytes != sizeof(uint64_t)) {
        return other_value_size;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/table", settings->folder);
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct table)) != 0) {
        return no_file;
    }
    const int flags = has_fault("forgets") ? MAP_PRIVATE : MAP_SHARED;
    struct table* table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, flags, file, 0);
    close(file);
    struct store* store = calloc(1, sizeof *store);
    if (table == MAP_FAILED || store == NULL) {
        return no_file;
    }
    store->table = table;
    pthread_mutex_init(&store->lock, NULL);
    if (has_fault("prints")) {
        for (int i = 0; i < 20000; ++i) {
            puts("{\"this is\": \"no answer of the bench\"}");
        }
    }
    if (has_fault("leaks")) {
        leak_threads();
    }
    *out = store;
    return STILLPOINT_PEER_OK;
}

static int close_table(void* handle)
{
    struct store* store = handle;
    munmap(store->table, sizeof *store->table);
    free(store);
    return has_fault("close") ? bad_luck : STILLPOINT_PEER_OK;
}

static int begin(void* store, uint32_t number, void** thread)
{
    (void)store;
    struct thread* made = malloc(sizeof *made);
    if (made == NULL) {
        return bad_luck;
    }
    *made = (struct thread){number, pthread_self()};
    *thread = made;
    return STILLPOINT_PEER_OK;
}

static int end(void* store, void* thread)
{
    (void)store;
    const struct thread* ended = thread;
    const int is_own = pthread_equal(ended->self, pthread_self());
    free(thread);
    return is_own ? STILLPOINT_PEER_OK : wrong_thread;
}

/* The key's slot, otherwise the first free one; NULL: the table is full. */
static struct slot* slot_of(struct table* table, uint64_t key)
{
    struct slot* free_slot = NULL;
    for (size_t i = 0; i < slot_count; ++i) {
        struct slot* slot = &table->slots[(key + i) % slot_count];
        if (slot->is_used == 1 && slot->key == key) {
            return slot;
        }
        if (slot->is_used != 1 && free_slot == NULL) {
            free_slot = slot;
        }
        if (slot->is_used == 0) {
            break;
        }
    }
    return free_slot;
}

static int check_thread(const struct thread* thread) { return pthread_equal(thread->self, pthread_self()) ? 0 : wrong_thread; }

static int get(void* handle, void* thread, uint64_t key, void* value, size_t value_bytes)
{
    struct store* store = handle;
    if (check_thread(thread) != 0) {
        return wrong_thread;
    }
    pthread_mutex_lock(&store->lock);
    const struct slot* slot = slot_of(store->table, key);
    const int is_there = slot != NULL && slot->is_used == 1;
    if (is_there) {
        const uint64_t found = slot->value + (has_fault("wrong") && key < UINT64_MAX - 64 ? UINT64_C(1) << 40 : 0);
        memcpy(value, &found, value_bytes);
    }
    pthread_mutex_unlock(&store->lock);
    return is_there ? STILLPOINT_PEER_OK : STILLPOINT_PEER_ABSENT;
}

static int put(void* handle, void* thread, uint64_t key, const void* value, size_t value_bytes)
{
    struct store* store = handle;
    if (check_thread(thread) != 0) {
        return wrong_thread;
    }
    if (has_fault("random") && rand() % 5000 == 0) {
        return bad_luck;
    }
    if (has_fault("undefined status") && rand() % 5000 == 0) {
        return 7;
    }
    if (has_fault("crash") && rand() % 5000 == 0) {
        abort();
    }
    uint64_t word;
    memcpy(&word, value, value_bytes);
    pthread_mutex_lock(&store->lock);
    struct slot* slot = slot_of(store->table, key);
    if (slot != NULL) {
        slot->value = word;
        slot->key = key;
        slot->is_used = 1;
    }
    pthread_mutex_unlock(&store->lock);
    return slot != NULL ? STILLPOINT_PEER_OK : table_is_full;
}

#ifndef WITHOUT_REMOVE
static int remove_key(void* handle, void* thread, uint64_t key)
{
    (void)thread;
    struct store* store = handle;
    pthread_mutex_lock(&store->lock);
    struct slot* slot = slot_of(store->table, key);
    const int is_there = slot != NULL && slot->is_used == 1;
    if (is_there) {
        slot->is_used = 2;
    }
    pthread_mutex_unlock(&store->lock);
    return is_there ? STILLPOINT_PEER_OK : STILLPOINT_PEER_ABSENT;
}
#endif

#ifndef WITHOUT_QUEUE
static int enqueue(void* handle, void* thread, uint64_t number)
{
    (void)thread;
    struct store* store = handle;
    pthread_mutex_lock(&store->lock);
    const uint64_t at = store->table->end;
    const int is_full = at - store->table->first == ring_length;
    if (!is_full) {
        store->table->ring[at % ring_length] = number;
        store->table->end = at + 1;
    }
    pthread_mutex_unlock(&store->lock);
    return is_full ? ring_is_full : STILLPOINT_PEER_OK;
}

static int dequeue(void* handle, void* thread, uint64_t* number)
{
    (void)thread;
    struct store* store = handle;
    pthread_mutex_lock(&store->lock);
    const uint64_t at = store->table->first;
    const int is_empty = at == store->table->end;
    if (!is_empty) {
        *number = store->table->ring[at % ring_length];
        store->table->first = at + 1;
    }
    pthread_mutex_unlock(&store->lock);
    return is_empty ? STILLPOINT_PEER_ABSENT : STILLPOINT_PEER_OK;
}
#endif

static int sync_table(void* handle)
{
    struct store* store = handle;
    ++store->syncs;
    return STILLPOINT_PEER_OK;
}

static int figures(void* handle, struct stillpoint_peer_figures* out)
{
    const struct store* store = handle;
    out->bytes_written = store->syncs * 4096;
    out->syncs = store->syncs;
    return STILLPOINT_PEER_OK;
}

static const char* message(int status)
{
    static const char* const texts[] = {
        "the file of the table cannot be mapped", "values must have 8 bytes", "the table is full", "the ring is full", "bad luck",
        "a thread uses the handle of another one"};
    return texts[-status - 1];
}

#ifndef WITHOUT_SYMBOL
const struct stillpoint_peer_functions stillpoint_peer = {
    .version = VERSION,
    .loses = STILLPOINT_PEER_LOSES_NOTHING,
    .name = NAME,
    .open = open_table,
    .close = close_table,
    .thread_begin = begin,
    .thread_end = end,
    .get = get,
    .put = put,
#ifndef WITHOUT_REMOVE
    .remove = remove_key,
#endif
#ifndef WITHOUT_QUEUE
    .enqueue = enqueue,
    .dequeue = dequeue,
#endif
    .sync = sync_table,
    .figures = figures,
    .message = message,
};
#endif
