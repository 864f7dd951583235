/* The map of hash_map.c annotated by hand for libpmemobj: object identifiers for pointers, a snapshot of each field before
 * it changes and none of new objects, addresses looked up once for each object. The reference for what the compiler does. */

#include <errno.h>
#include <libpmemobj.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

enum { instances = 64, buckets_at_first = 16, entries_per_bucket_max = 2 };

POBJ_LAYOUT_BEGIN(hash_map);
POBJ_LAYOUT_ROOT(hash_map, struct map);
POBJ_LAYOUT_TOID(hash_map, struct entry);
POBJ_LAYOUT_TOID(hash_map, struct buckets);
POBJ_LAYOUT_END(hash_map);

struct entry {
    uint64_t key;
    TOID(struct entry) next;
    unsigned char value[STORE_VALUE_BYTES];
};

struct buckets {
    uint64_t count;
    TOID(struct entry) first[];
};

struct table {
    PMEMrwlock lock; /* guards everything behind it */
    uint64_t entries;
    TOID(struct buckets) buckets;
    char unused[40];
};

struct map {
    struct table tables[instances];
};

static PMEMobjpool* pool;
static struct map* map;

static uint64_t hash(uint64_t key)
{
    key = (key ^ (key >> 31)) * 0x7fb5d329728ea185u;
    return key ^ (key >> 29);
}

static struct table* table_of(uint64_t key) { return &map->tables[hash(key) % instances]; }
static uint64_t bucket_of(uint64_t key, uint64_t buckets) { return hash(key) / instances % buckets; }

static struct entry* find(struct table* table, uint64_t key)
{
    struct buckets* buckets = D_RW(table->buckets);
    if (buckets == NULL) {
        return NULL;
    }
    struct entry* entry = D_RW(buckets->first[bucket_of(key, buckets->count)]);
    while (entry != NULL && entry->key != key) {
        entry = D_RW(entry->next);
    }
    return entry;
}

/* In a transaction. The new buckets, already in the table. */
static struct buckets* grow(struct table* table)
{
    const struct buckets* old = D_RO(table->buckets);
    const uint64_t count = old == NULL ? buckets_at_first : 2 * old->count;
    TOID(struct buckets) made = TX_ZALLOC(struct buckets, sizeof(struct buckets) + count * sizeof(TOID(struct entry)));
    struct buckets* buckets = D_RW(made);
    buckets->count = count;
    for (uint64_t i = 0; old != NULL && i < old->count; ++i) {
        TOID(struct entry) moved = old->first[i];
        while (!TOID_IS_NULL(moved)) {
            struct entry* entry = D_RW(moved);
            const TOID(struct entry) next = entry->next;
            TOID(struct entry)* first = &buckets->first[bucket_of(entry->key, count)];
            TX_ADD_FIELD_DIRECT(entry, next);
            entry->next = *first;
            *first = moved;
            moved = next;
        }
    }
    TX_FREE(table->buckets);
    TX_ADD_FIELD_DIRECT(table, buckets);
    table->buckets = made;
    return buckets;
}

/* In a transaction. */
static void insert(struct table* table, uint64_t key, const void* value)
{
    TOID(struct entry) made = TX_NEW(struct entry);
    struct buckets* buckets = D_RW(table->buckets);
    if (buckets == NULL || table->entries >= buckets->count * entries_per_bucket_max) {
        buckets = grow(table);
    }
    struct entry* entry = D_RW(made);
    TOID(struct entry)* first = &buckets->first[bucket_of(key, buckets->count)];
    entry->key = key;
    entry->next = *first;
    memcpy(entry->value, value, STORE_VALUE_BYTES);
    pmemobj_tx_add_range_direct(first, sizeof *first);
    *first = made;
    TX_ADD_FIELD_DIRECT(table, entries);
    table->entries += 1;
}

int store_put(uint64_t key, const void* value)
{
    struct table* table = table_of(key);
    volatile int failed = 0; /* TX_BEGIN returns twice where the transaction aborts */
    pmemobj_rwlock_wrlock(pool, &table->lock);
    TX_BEGIN(pool)
    {
        struct entry* entry = find(table, key);
        if (entry != NULL) {
            TX_ADD_FIELD_DIRECT(entry, value);
            memcpy(entry->value, value, STORE_VALUE_BYTES);
        } else {
            insert(table, key, value);
        }
    }
    TX_ONABORT { failed = pmemobj_tx_errno(); }
    TX_END
    pmemobj_rwlock_unlock(pool, &table->lock);
    return failed;
}

bool store_get(uint64_t key, void* value)
{
    struct table* table = table_of(key);
    pmemobj_rwlock_rdlock(pool, &table->lock);
    const struct entry* entry = find(table, key);
    if (entry != NULL) {
        memcpy(value, entry->value, STORE_VALUE_BYTES);
    }
    pmemobj_rwlock_unlock(pool, &table->lock);
    return entry != NULL;
}

bool store_remove(uint64_t key)
{
    struct table* table = table_of(key);
    pmemobj_rwlock_wrlock(pool, &table->lock);
    struct entry* entry = find(table, key);
    if (entry != NULL) {
        TX_BEGIN(pool)
        {
            struct buckets* buckets = D_RW(table->buckets);
            TOID(struct entry)* link = &buckets->first[bucket_of(key, buckets->count)];
            struct entry* linked = D_RW(*link);
            while (linked != entry) {
                link = &linked->next;
                linked = D_RW(*link);
            }
            const TOID(struct entry) removed = *link;
            pmemobj_tx_add_range_direct(link, sizeof *link);
            *link = entry->next;
            TX_ADD_FIELD_DIRECT(table, entries);
            table->entries -= 1;
            TX_FREE(removed);
        }
        TX_END
    }
    pmemobj_rwlock_unlock(pool, &table->lock);
    return entry != NULL;
}

long store_check(void)
{
    long all = 0;
    for (int i = 0; i < instances; ++i) {
        const struct table* table = &map->tables[i];
        const struct buckets* buckets = D_RO(table->buckets);
        uint64_t entries = 0;
        for (uint64_t b = 0; buckets != NULL && b < buckets->count; ++b) {
            for (const struct entry* entry = D_RO(buckets->first[b]); entry != NULL; entry = D_RO(entry->next)) {
                if (table_of(entry->key) != table || bucket_of(entry->key, buckets->count) != b) {
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
    pool = access(path, F_OK) == 0 ? pmemobj_open(path, POBJ_LAYOUT_NAME(hash_map))
                                   : pmemobj_create(path, POBJ_LAYOUT_NAME(hash_map), size_bytes, 0600);
    if (pool == NULL) {
        return errno;
    }
    map = D_RW((TOID(struct map))POBJ_ROOT(pool, struct map));
    return map != NULL ? 0 : ENOMEM;
}

void store_close(void) { pmemobj_close(pool); }
const char* store_name(void) { return "hash_map hand-annotated"; }
const char* store_error(void) { return pmemobj_errormsg(); }
