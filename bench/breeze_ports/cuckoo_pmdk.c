/* The table of cuckoo.c, annotated by hand for libpmemobj: object identifiers for pointers, and one snapshot of what changes. */

#include <errno.h>
#include <libpmemobj.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

enum { table_count = 64, slots_per_bucket = 4, buckets_at_first = 16, moves_max = 64 };

typedef struct Map Map;
typedef struct Table Table;
typedef struct Item Item;
POBJ_LAYOUT_BEGIN(cuckoo);
POBJ_LAYOUT_ROOT(cuckoo, Map);
POBJ_LAYOUT_TOID(cuckoo, Table);
POBJ_LAYOUT_TOID(cuckoo, Item);
POBJ_LAYOUT_END(cuckoo);

struct Item {
    uint64_t key;
    unsigned char value[STORE_VALUE_BYTES];
};

struct Table {
    uint64_t buckets; /* a power of two */
    TOID(Item) slots[];
};

struct Map {
    TOID(Table) tables[table_count];
};

static PMEMobjpool* pool;
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
            if (!TOID_IS_NULL(table->slots[at]) && D_RO(table->slots[at])->key == key) {
                return at;
            }
        }
    }
    return UINT64_MAX;
}

static TOID(Table) make_table(uint64_t buckets)
{
    TOID(Table) table = TX_ZALLOC(Table, sizeof(Table) + buckets * slots_per_bucket * sizeof(TOID(Item)));
    D_RW(table)->buckets = buckets;
    return table;
}

static void set_slot(Table* table, uint64_t at, TOID(Item) item, bool is_new)
{
    if (!is_new) {
        TX_ADD_DIRECT(&table->slots[at]);
    }
    table->slots[at] = item;
}

/* Puts the item into one of its buckets, and moves others to theirs. NULL, or the item that found no place. `is_new`: no snapshots. */
static TOID(Item) place(Table* table, TOID(Item) item, bool is_new)
{
    for (unsigned move = 0; move < moves_max; ++move) {
        for (unsigned which = 0; which < 2; ++which) {
            const uint64_t first = bucket_of(table, D_RO(item)->key, which);
            for (uint64_t at = first; at < first + slots_per_bucket; ++at) {
                if (TOID_IS_NULL(table->slots[at])) {
                    set_slot(table, at, item, is_new);
                    return TOID_NULL(Item);
                }
            }
        }
        const uint64_t at = bucket_of(table, D_RO(item)->key, move % 2) + hash(D_RO(item)->key, move) % slots_per_bucket;
        TOID(Item) moved = table->slots[at];
        set_slot(table, at, item, is_new);
        item = moved;
    }
    return item;
}

/* A table with all items of the old one and one more, which has found no place there. */
static TOID(Table) grow(TOID(Table) of, TOID(Item) item)
{
    const Table* old = D_RO(of);
    for (uint64_t buckets = old->buckets * 2;; buckets *= 2) {
        TOID(Table) table = make_table(buckets);
        TOID(Item) left = place(D_RW(table), item, true);
        for (uint64_t at = 0; TOID_IS_NULL(left) && at < old->buckets * slots_per_bucket; ++at) {
            left = !TOID_IS_NULL(old->slots[at]) ? place(D_RW(table), old->slots[at], true) : TOID_NULL(Item);
        }
        if (TOID_IS_NULL(left)) {
            TX_FREE(of);
            return table;
        }
        TX_FREE(table);
    }
}

static void insert(TOID(Table) * table, uint64_t key, const void* value)
{
    TOID(Item) item = TX_NEW(Item);
    if (TOID_IS_NULL(*table)) {
        TX_ADD_DIRECT(table);
        *table = make_table(buckets_at_first);
    }
    D_RW(item)->key = key;
    memcpy(D_RW(item)->value, value, STORE_VALUE_BYTES);
    TOID(Item) left = place(D_RW(*table), item, false);
    if (!TOID_IS_NULL(left)) {
        TOID(Table) larger = grow(*table, left);
        TX_ADD_DIRECT(table);
        *table = larger;
    }
}

int store_put(uint64_t key, const void* value)
{
    const uint64_t number = table_of(key);
    int failed = 0;
    pthread_rwlock_wrlock(&locks[number]);
    const uint64_t at = find(D_RO(map->tables[number]), key);
    TX_BEGIN(pool)
    {
        if (at != UINT64_MAX) {
            Item* item = D_RW(D_RW(map->tables[number])->slots[at]);
            TX_ADD_DIRECT(&item->value);
            memcpy(item->value, value, STORE_VALUE_BYTES);
        } else {
            insert(&map->tables[number], key, value);
        }
    }
    TX_ONABORT { failed = ENOMEM; }
    TX_END
    pthread_rwlock_unlock(&locks[number]);
    return failed;
}

bool store_get(uint64_t key, void* value)
{
    const uint64_t number = table_of(key);
    pthread_rwlock_rdlock(&locks[number]);
    const uint64_t at = find(D_RO(map->tables[number]), key);
    if (at != UINT64_MAX) {
        memcpy(value, D_RO(D_RO(map->tables[number])->slots[at])->value, STORE_VALUE_BYTES);
    }
    pthread_rwlock_unlock(&locks[number]);
    return at != UINT64_MAX;
}

bool store_remove(uint64_t key)
{
    const uint64_t number = table_of(key);
    pthread_rwlock_wrlock(&locks[number]);
    const uint64_t at = find(D_RO(map->tables[number]), key);
    if (at != UINT64_MAX) {
        TOID(Item)* slot = &D_RW(map->tables[number])->slots[at];
        TX_BEGIN(pool)
        {
            TX_FREE(*slot);
            TX_ADD_DIRECT(slot);
            *slot = TOID_NULL(Item);
        }
        TX_END
    }
    pthread_rwlock_unlock(&locks[number]);
    return at != UINT64_MAX;
}

long store_check(void)
{
    long keys = 0;
    for (uint64_t number = 0; number < table_count; ++number) {
        const Table* table = D_RO(map->tables[number]);
        for (uint64_t at = 0; table != NULL && at < table->buckets * slots_per_bucket; ++at) {
            if (!TOID_IS_NULL(table->slots[at])) {
                const uint64_t key = D_RO(table->slots[at])->key;
                if (table_of(key) != number || find(table, key) != at) {
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
    pool = access(path, F_OK) == 0 ? pmemobj_open(path, POBJ_LAYOUT_NAME(cuckoo))
                                   : pmemobj_create(path, POBJ_LAYOUT_NAME(cuckoo), size_bytes, 0600);
    map = pool != NULL ? D_RW(POBJ_ROOT(pool, Map)) : NULL;
    return map != NULL ? 0 : errno;
}

void store_close(void) { pmemobj_close(pool); }
const char* store_name(void) { return "cuckoo pmdk"; }
const char* store_error(void) { return pmemobj_errormsg(); }
