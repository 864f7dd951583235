/* The table of cuckoo.c, durable by Breeze: `stillpoint cc --runtime=breeze` logs what it stores. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <stillpoint/breeze.h>

#include "store.h"

enum { table_count = 64, slots_per_bucket = 4, buckets_at_first = 16, moves_max = 64 };

typedef struct Item {
    uint64_t key;
    unsigned char value[STORE_VALUE_BYTES];
} Item;

typedef struct Table {
    uint64_t buckets; /* a power of two */
    Item* slots[];
} Table;

typedef struct Map {
    Table* tables[table_count];
} Map;
NVM_AUTO_TYPES(Item, Table, Map);

static NVM_POOL* pool;
static Map* map;
static pthread_rwlock_t locks[table_count];

static uint64_t hash(uint64_t key, uint64_t seed)
{
    key = (key ^ (key >> 31) ^ seed) * 0x7fb5d329728ea185u;
    return key ^ (key >> 29);
}

static uint64_t table_of(uint64_t key) { return hash(key, 0) % table_count; }

/* The bucket's first slot; `which`: of the key's two buckets. */
static uint64_t bucket_of(const Table* table, uint64_t key, unsigned which)
{
    return (hash(key, which == 0 ? 0x51ed27u : 0x9e3779b9u) >> 8 & (table->buckets - 1)) * slots_per_bucket;
}

/* The slot that has the key, or UINT64_MAX. */
static uint64_t find(const Table* table, uint64_t key)
{
    for (unsigned which = 0; table != NULL && which < 2; ++which) {
        const uint64_t first = bucket_of(table, key, which);
        for (uint64_t at = first; at < first + slots_per_bucket; ++at) {
            if (table->slots[at] != NULL && table->slots[at]->key == key) {
                return at;
            }
        }
    }
    return UINT64_MAX;
}

static Table* make_table(uint64_t buckets)
{
    Table* table = nvm_alloc(pool, NVM_TYPE_ID(Table), sizeof *table + buckets * slots_per_bucket * sizeof table->slots[0]);
    if (table != NULL) {
        table->buckets = buckets;
    }
    return table;
}

/* Puts the item into one of its buckets, and moves others to theirs. NULL, or the item that found no place. */
static Item* place(Table* table, Item* item)
{
    for (unsigned move = 0; move < moves_max; ++move) {
        for (unsigned which = 0; which < 2; ++which) {
            const uint64_t first = bucket_of(table, item->key, which);
            for (uint64_t at = first; at < first + slots_per_bucket; ++at) {
                if (table->slots[at] == NULL) {
                    table->slots[at] = item;
                    return NULL;
                }
            }
        }
        const uint64_t at = bucket_of(table, item->key, move % 2) + hash(item->key, move) % slots_per_bucket;
        Item* moved = table->slots[at];
        table->slots[at] = item;
        item = moved;
    }
    return item;
}

/* A table with all items of the old one and one more, which has found no place there. */
static Table* grow(Table* old, Item* item)
{
    for (uint64_t buckets = old->buckets * 2;; buckets *= 2) {
        Table* table = make_table(buckets);
        if (table == NULL) {
            return NULL;
        }
        Item* left = place(table, item);
        for (uint64_t at = 0; left == NULL && at < old->buckets * slots_per_bucket; ++at) {
            left = old->slots[at] != NULL ? place(table, old->slots[at]) : NULL;
        }
        if (left == NULL) {
            return table;
        }
    }
}

static int insert(Table** table, uint64_t key, const void* value)
{
    Item* item = nvm_alloc(pool, NVM_TYPE_ID(Item), sizeof *item);
    if (item == NULL || (*table == NULL && (*table = make_table(buckets_at_first)) == NULL)) {
        return ENOMEM;
    }
    item->key = key;
    memcpy(item->value, value, STORE_VALUE_BYTES);
    Item* left = place(*table, item);
    if (left != NULL) {
        Table* larger = grow(*table, left);
        if (larger == NULL) {
            return ENOMEM;
        }
        *table = larger;
    }
    return 0;
}

int store_put(uint64_t key, const void* value)
{
    const uint64_t number = table_of(key);
    int failed = 0;
    pthread_rwlock_wrlock(&locks[number]);
    nvm_tx_begin(pool);
    const uint64_t at = find(map->tables[number], key);
    if (at != UINT64_MAX) {
        memcpy(map->tables[number]->slots[at]->value, value, STORE_VALUE_BYTES);
    } else {
        failed = insert(&map->tables[number], key, value);
    }
    failed = failed == 0 ? nvm_tx_commit(pool) : failed + nvm_tx_abort(pool);
    pthread_rwlock_unlock(&locks[number]);
    return failed;
}

bool store_get(uint64_t key, void* value)
{
    const uint64_t number = table_of(key);
    pthread_rwlock_rdlock(&locks[number]);
    const uint64_t at = find(map->tables[number], key);
    if (at != UINT64_MAX) {
        memcpy(value, map->tables[number]->slots[at]->value, STORE_VALUE_BYTES);
    }
    pthread_rwlock_unlock(&locks[number]);
    return at != UINT64_MAX;
}

bool store_remove(uint64_t key)
{
    const uint64_t number = table_of(key);
    pthread_rwlock_wrlock(&locks[number]);
    const uint64_t at = find(map->tables[number], key);
    if (at != UINT64_MAX) {
        nvm_tx_begin(pool);
        map->tables[number]->slots[at] = NULL;
        nvm_tx_commit(pool);
    }
    pthread_rwlock_unlock(&locks[number]);
    return at != UINT64_MAX;
}

long store_check(void)
{
    long keys = 0;
    for (uint64_t number = 0; number < table_count; ++number) {
        const Table* table = map->tables[number];
        for (uint64_t at = 0; table != NULL && at < table->buckets * slots_per_bucket; ++at) {
            if (table->slots[at] != NULL) {
                if (table_of(table->slots[at]->key) != number || find(table, table->slots[at]->key) != at) {
                    return -1;
                }
                ++keys;
            }
        }
    }
    return keys;
}

static void make_locks(void)
{
    for (uint64_t number = 0; number < table_count; ++number) {
        pthread_rwlock_init(&locks[number], NULL);
    }
}

int store_open(const char* path, size_t size_bytes)
{
    make_locks();
    pool = nvm_pool_obtain(path, size_bytes);
    map = nvm_pool_obtain_root(pool, NVM_TYPE_ID(Map), sizeof *map);
    return map != NULL ? 0 : ENOMEM;
}

void store_close(void) { nvm_pool_close(pool); }
const char* store_name(void) { return "cuckoo breeze"; }
const char* store_error(void) { return sp_last_error(); }
