/* The paper's hash map [NVHooks §4.3.1]: 64 instances of a chained table that grows, each behind a reader-writer lock.
 * Written once. What makes it durable is the layer's header and the lines that say durable_. */

#include DURABLE_HOOKS /* "pmdk-hooks.h", "undo-hooks.h", "pmthreads-hooks.h" or "volatile-hooks.h" */

#include <errno.h>
#include <string.h>

#include "store.h"

enum { instances = 64, buckets_at_first = 16, entries_per_bucket_max = 2 };

struct entry {
    uint64_t key;
    struct entry* next;
    unsigned char value[STORE_VALUE_BYTES];
};

struct table {
    durable_rwlock lock; /* guards everything behind it */
    uint64_t entries;
    uint64_t buckets;
    struct entry** bucket;
    char unused[32];
};

/* Zeroed memory is an empty map. */
struct map {
    struct table tables[instances];
};

static struct map* map;

static uint64_t hash(uint64_t key)
{
    key = (key ^ (key >> 31)) * 0x7fb5d329728ea185u;
    return key ^ (key >> 29);
}

static struct table* table_of(uint64_t key) { return &map->tables[hash(key) % instances]; }
static uint64_t bucket_of(uint64_t key, uint64_t buckets) { return hash(key) / instances % buckets; }

static struct entry* find(const struct table* table, uint64_t key)
{
    if (table->buckets == 0) {
        return NULL;
    }
    struct entry* entry = table->bucket[bucket_of(key, table->buckets)];
    while (entry != NULL && entry->key != key) {
        entry = entry->next;
    }
    return entry;
}

static int grow(struct table* table)
{
    const uint64_t buckets = table->buckets == 0 ? buckets_at_first : 2 * table->buckets;
    struct entry** bucket = durable_allocate(buckets * sizeof *bucket);
    if (bucket == NULL) {
        return ENOMEM;
    }
    for (uint64_t i = 0; i < buckets; ++i) {
        bucket[i] = NULL;
    }
    for (uint64_t i = 0; i < table->buckets; ++i) {
        struct entry* next = NULL;
        for (struct entry* entry = table->bucket[i]; entry != NULL; entry = next) {
            const uint64_t at = bucket_of(entry->key, buckets);
            next = entry->next;
            entry->next = bucket[at];
            bucket[at] = entry;
        }
    }
    durable_release(table->bucket);
    table->bucket = bucket;
    table->buckets = buckets;
    return 0;
}

static int insert(struct table* table, uint64_t key, const void* value)
{
    struct entry* entry = durable_allocate(sizeof *entry);
    if (entry == NULL || (table->entries >= table->buckets * entries_per_bucket_max && grow(table) != 0)) {
        return ENOMEM;
    }
    struct entry** bucket = &table->bucket[bucket_of(key, table->buckets)];
    entry->key = key;
    entry->next = *bucket;
    memcpy(entry->value, value, STORE_VALUE_BYTES);
    *bucket = entry;
    table->entries += 1;
    return 0;
}

int store_put(uint64_t key, const void* value)
{
    struct table* table = table_of(key);
    int failed = 0;
    durable_write_lock(&table->lock);
    durable_fase_begin();
    struct entry* entry = find(table, key);
    if (entry != NULL) {
        memcpy(entry->value, value, STORE_VALUE_BYTES);
    } else {
        failed = insert(table, key, value);
    }
    const int aborted = durable_fase_end();
    durable_unlock(&table->lock);
    return failed != 0 ? failed : aborted;
}

bool store_get(uint64_t key, void* value)
{
    struct table* table = table_of(key);
    durable_read_lock(&table->lock);
    const struct entry* entry = find(table, key);
    if (entry != NULL) {
        memcpy(value, entry->value, STORE_VALUE_BYTES);
    }
    durable_unlock(&table->lock);
    return entry != NULL;
}

bool store_remove(uint64_t key)
{
    struct table* table = table_of(key);
    durable_write_lock(&table->lock);
    durable_fase_begin();
    struct entry* entry = find(table, key);
    if (entry != NULL) {
        struct entry** link = &table->bucket[bucket_of(key, table->buckets)];
        while (*link != entry) {
            link = &(*link)->next;
        }
        *link = entry->next;
        table->entries -= 1;
        durable_release(entry);
    }
    (void)durable_fase_end();
    durable_unlock(&table->lock);
    return entry != NULL;
}

long store_check(void)
{
    long all = 0;
    for (int i = 0; i < instances; ++i) {
        const struct table* table = &map->tables[i];
        uint64_t entries = 0;
        for (uint64_t b = 0; b < table->buckets; ++b) {
            for (const struct entry* entry = table->bucket[b]; entry != NULL; entry = entry->next) {
                if (table_of(entry->key) != table || bucket_of(entry->key, table->buckets) != b) {
                    return -1;
                }
                ++entries;
            }
        }
        if (entries != table->entries) {
            return -1;
        }
        all += (long)entries;
    }
    return all;
}

int store_open(const char* path, size_t size_bytes)
{
    const int failed = durable_open(path, size_bytes);
    if (failed != 0) {
        return failed;
    }
    map = durable_root(sizeof *map);
    return map != NULL ? 0 : ENOMEM;
}

void store_close(void) { durable_close(); }
const char* store_name(void) { return "hash_map " DURABLE_LAYER; }
const char* store_error(void) { return durable_error(); }
