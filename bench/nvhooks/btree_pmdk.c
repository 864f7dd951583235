/* The tree of btree.c annotated by hand for libpmemobj: object identifiers for pointers, one snapshot of what changes in
 * a node and none of new objects, addresses looked up once for each object. The reference for what the compiler does.
 *
 * Locks. A thread holds a node's lock before it takes its child's, and then lets the node go (lock coupling). An insert
 * first tries with read locks down to the leaf. Where the leaf is full it starts again with write locks and keeps those
 * of the nodes that a split may reach. So what a FASE writes stays locked until the FASE has ended. */

#include <errno.h>
#include <libpmemobj.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

enum { key_bytes = 32, keys_max = 32, height_max = 16 };

POBJ_LAYOUT_BEGIN(btree);
POBJ_LAYOUT_ROOT(btree, struct tree);
POBJ_LAYOUT_TOID(btree, struct node);
POBJ_LAYOUT_END(btree);

struct key {
    char text[key_bytes];
};

struct node {
    PMEMrwlock lock; /* guards all but `level`, which never changes */
    uint32_t level;      /* 0: a leaf */
    uint32_t count;      /* keys */
    struct key keys[keys_max];
    PMEMoid slots[keys_max + 1]; /* leaf: value of keys[i]; else slots[i] is the child with the keys below keys[i] */
};

/* Zeroed memory is an empty tree. */
struct tree {
    PMEMrwlock lock; /* guards `root` */
    TOID(struct node) root;
};

/* The nodes that a thread has write-locked, from the top. */
struct held {
    struct node* nodes[height_max];
    uint32_t count;
    bool tree;
};

static PMEMobjpool* pool;
static struct tree* tree;

static void make_key(struct key* key, uint64_t number)
{
    static const char digits[] = "0123456789abcdef";
    memcpy(key->text, "customer", 8);
    memset(key->text + 24, '.', 8);
    for (int i = 0; i < 16; ++i) {
        key->text[8 + i] = digits[number >> (60 - 4 * i) & 15];
    }
}

/* The first key that is not below `key`. */
static uint32_t position(const struct node* node, const struct key* key)
{
    uint32_t low = 0;
    uint32_t high = node->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (memcmp(node->keys[middle].text, key->text, key_bytes) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool holds(const struct node* leaf, uint32_t at, const struct key* key)
{
    return at < leaf->count && memcmp(leaf->keys[at].text, key->text, key_bytes) == 0;
}

static uint32_t child_index(const struct node* node, const struct key* key)
{
    const uint32_t at = position(node, key);
    return holds(node, at, key) ? at + 1 : at;
}

static void lock_node(struct node* node, bool for_write)
{
    if (for_write) {
        pmemobj_rwlock_wrlock(pool, &node->lock);
    } else {
        pmemobj_rwlock_rdlock(pool, &node->lock);
    }
}

/* The leaf for `key`, locked, and no other lock held; NULL in an empty tree. */
static struct node* find_leaf(const struct key* key, bool for_write)
{
    pmemobj_rwlock_rdlock(pool, &tree->lock);
    struct node* node = D_RW(tree->root);
    if (node == NULL) {
        pmemobj_rwlock_unlock(pool, &tree->lock);
        return NULL;
    }
    lock_node(node, for_write && node->level == 0);
    pmemobj_rwlock_unlock(pool, &tree->lock);
    while (node->level > 0) {
        struct node* child = pmemobj_direct(node->slots[child_index(node, key)]);
        lock_node(child, for_write && node->level == 1);
        pmemobj_rwlock_unlock(pool, &node->lock);
        node = child;
    }
    return node;
}

/* In a transaction, as are those below that change anything. */
static TOID(struct node) make_node(uint32_t level)
{
    TOID(struct node) made = TX_ZNEW(struct node);
    D_RW(made)->level = level;
    return made;
}

/* Snapshots what insert_at changes; not for new nodes. */
static void log_insert(struct node* node, uint32_t at)
{
    const uint32_t slot_at = node->level == 0 ? at : at + 1;
    const uint32_t slots = node->count + (node->level == 0 ? 0 : 1);
    pmemobj_tx_add_range_direct(&node->keys[at], (node->count - at + 1) * sizeof(struct key));
    pmemobj_tx_add_range_direct(&node->slots[slot_at], (slots - slot_at + 1) * sizeof(PMEMoid));
    TX_ADD_FIELD_DIRECT(node, count);
}

/* Puts `key` at `at`, and `slot` at `at` in a leaf, after it in an inner node. There is room. */
static void insert_at(struct node* node, uint32_t at, const struct key* key, PMEMoid slot)
{
    const uint32_t slot_at = node->level == 0 ? at : at + 1;
    const uint32_t slots = node->count + (node->level == 0 ? 0 : 1);
    memmove(&node->keys[at + 1], &node->keys[at], (node->count - at) * sizeof(struct key));
    memmove(&node->slots[slot_at + 1], &node->slots[slot_at], (slots - slot_at) * sizeof(PMEMoid));
    node->keys[at] = *key;
    node->slots[slot_at] = slot;
    node->count += 1;
}

/* Moves the upper half of a full node to a new one; *separator is the lowest key of the new one's subtree. */
static TOID(struct node) split(struct node* node, struct key* separator)
{
    TOID(struct node) made = make_node(node->level);
    struct node* right = D_RW(made);
    const uint32_t half = node->count / 2;
    const uint32_t from = node->level == 0 ? half : half + 1; /* an inner node's middle key moves up */
    const uint32_t moved = node->count - from;
    *separator = node->keys[half];
    memcpy(right->keys, &node->keys[from], moved * sizeof(struct key));
    memcpy(right->slots, &node->slots[from], (moved + (node->level > 0 ? 1 : 0)) * sizeof(PMEMoid));
    right->count = moved;
    TX_ADD_FIELD_DIRECT(node, count);
    node->count = half;
    return made;
}

static void unlock_held(struct held* held)
{
    for (uint32_t i = 0; i < held->count; ++i) {
        pmemobj_rwlock_unlock(pool, &held->nodes[i]->lock);
    }
    if (held->tree) {
        pmemobj_rwlock_unlock(pool, &tree->lock);
    }
    held->count = 0;
    held->tree = false;
}

/* Write-locks the way to the leaf; keeps what a split of the leaf can reach. The tree is not empty. */
static void lock_way(struct held* held, const struct key* key)
{
    struct node* node = D_RW(tree->root);
    for (;;) {
        pmemobj_rwlock_wrlock(pool, &node->lock);
        if (node->count < keys_max) {
            unlock_held(held);
        }
        held->nodes[held->count++] = node;
        if (node->level == 0) {
            return;
        }
        node = pmemobj_direct(node->slots[child_index(node, key)]);
    }
}

static PMEMoid make_value(const void* value)
{
    const PMEMoid made = pmemobj_tx_alloc(STORE_VALUE_BYTES, 0);
    memcpy(pmemobj_direct(made), value, STORE_VALUE_BYTES);
    return made;
}

static void overwrite(PMEMoid slot, const void* value)
{
    void* bytes = pmemobj_direct(slot);
    pmemobj_tx_add_range_direct(bytes, STORE_VALUE_BYTES);
    memcpy(bytes, value, STORE_VALUE_BYTES);
}

/* With the way locked: inserts into the leaf, and splits upwards as far as nodes are full. */
static void insert_with_splits(struct held* held, const struct key* key, PMEMoid slot)
{
    struct key upper = *key;
    for (uint32_t i = held->count; i-- > 0;) {
        struct node* node = held->nodes[i];
        if (node->count < keys_max) {
            const uint32_t at = position(node, &upper);
            log_insert(node, at);
            insert_at(node, at, &upper, slot);
            return;
        }
        struct key separator;
        TOID(struct node) right = split(node, &separator);
        struct node* into = D_RW(right);
        uint32_t at = position(into, &upper);
        if (memcmp(upper.text, separator.text, key_bytes) < 0) {
            into = node;
            at = position(into, &upper);
            log_insert(into, at);
        }
        insert_at(into, at, &upper, slot);
        upper = separator;
        slot = right.oid;
    }
    TOID(struct node) made = make_node(D_RO(tree->root)->level + 1);
    struct node* root = D_RW(made);
    root->slots[0] = tree->root.oid;
    insert_at(root, 0, &upper, slot);
    TX_ADD_FIELD_DIRECT(tree, root);
    tree->root = made;
}

static int put_with_way_locked(const struct key* key, const void* value)
{
    struct held held = {.count = 0, .tree = true};
    volatile int failed = 0; /* TX_BEGIN returns twice where the transaction aborts */
    pmemobj_rwlock_wrlock(pool, &tree->lock);
    if (!TOID_IS_NULL(tree->root)) {
        lock_way(&held, key);
    }
    TX_BEGIN(pool)
    {
        if (held.count == 0) {
            TOID(struct node) made = make_node(0);
            insert_at(D_RW(made), 0, key, make_value(value));
            TX_ADD_FIELD_DIRECT(tree, root);
            tree->root = made;
        } else {
            struct node* leaf = held.nodes[held.count - 1];
            const uint32_t at = position(leaf, key);
            if (holds(leaf, at, key)) {
                overwrite(leaf->slots[at], value);
            } else {
                insert_with_splits(&held, key, make_value(value));
            }
        }
    }
    TX_ONABORT { failed = pmemobj_tx_errno(); }
    TX_END
    unlock_held(&held);
    return failed;
}

int store_put(uint64_t number, const void* value)
{
    struct key key;
    make_key(&key, number);
    struct node* leaf = find_leaf(&key, true);
    if (leaf == NULL) {
        return put_with_way_locked(&key, value);
    }
    const uint32_t at = position(leaf, &key);
    const bool there = holds(leaf, at, &key);
    if (!there && leaf->count == keys_max) {
        pmemobj_rwlock_unlock(pool, &leaf->lock);
        return put_with_way_locked(&key, value);
    }
    volatile int failed = 0;
    TX_BEGIN(pool)
    {
        if (there) {
            overwrite(leaf->slots[at], value);
        } else {
            const PMEMoid made = make_value(value);
            log_insert(leaf, at);
            insert_at(leaf, at, &key, made);
        }
    }
    TX_ONABORT { failed = pmemobj_tx_errno(); }
    TX_END
    pmemobj_rwlock_unlock(pool, &leaf->lock);
    return failed;
}

bool store_get(uint64_t number, void* value)
{
    struct key key;
    make_key(&key, number);
    struct node* leaf = find_leaf(&key, false);
    if (leaf == NULL) {
        return false;
    }
    const uint32_t at = position(leaf, &key);
    const bool there = holds(leaf, at, &key);
    if (there) {
        memcpy(value, pmemobj_direct(leaf->slots[at]), STORE_VALUE_BYTES);
    }
    pmemobj_rwlock_unlock(pool, &leaf->lock);
    return there;
}

/* Leaves may become empty; they are not merged. */
bool store_remove(uint64_t number)
{
    struct key key;
    make_key(&key, number);
    struct node* leaf = find_leaf(&key, true);
    if (leaf == NULL) {
        return false;
    }
    const uint32_t at = position(leaf, &key);
    const bool there = holds(leaf, at, &key);
    if (there) {
        TX_BEGIN(pool)
        {
            const uint32_t behind = leaf->count - at - 1;
            pmemobj_tx_free(leaf->slots[at]);
            TX_ADD_FIELD_DIRECT(leaf, count);
            if (behind > 0) {
                pmemobj_tx_add_range_direct(&leaf->keys[at], behind * sizeof(struct key));
                pmemobj_tx_add_range_direct(&leaf->slots[at], behind * sizeof(PMEMoid));
                memmove(&leaf->keys[at], &leaf->keys[at + 1], behind * sizeof(struct key));
                memmove(&leaf->slots[at], &leaf->slots[at + 1], behind * sizeof(PMEMoid));
            }
            leaf->count -= 1;
        }
        TX_END
    }
    pmemobj_rwlock_unlock(pool, &leaf->lock);
    return there;
}

/* Keys below `node`, all in [low, high) and in order (NULL: no bound); -1 where something is wrong. */
static long check_node(const struct node* node, const struct key* low, const struct key* high)
{
    for (uint32_t i = 0; i < node->count; ++i) {
        const struct key* key = &node->keys[i];
        if ((i > 0 && memcmp(node->keys[i - 1].text, key->text, key_bytes) >= 0) ||
            (low != NULL && memcmp(low->text, key->text, key_bytes) > 0) ||
            (high != NULL && memcmp(key->text, high->text, key_bytes) >= 0)) {
            return -1;
        }
    }
    if (node->level == 0) {
        return node->count <= keys_max ? (long)node->count : -1;
    }
    long all = 0;
    for (uint32_t i = 0; i <= node->count; ++i) {
        const struct node* child = pmemobj_direct(node->slots[i]);
        const long below = child->level + 1 != node->level
                               ? -1
                               : check_node(child, i == 0 ? low : &node->keys[i - 1], i == node->count ? high : &node->keys[i]);
        if (below < 0) {
            return -1;
        }
        all += below;
    }
    return all;
}

long store_check(void) { return TOID_IS_NULL(tree->root) ? 0 : check_node(D_RO(tree->root), NULL, NULL); }

int store_open(const char* path, size_t size_bytes)
{
    pool = access(path, F_OK) == 0 ? pmemobj_open(path, POBJ_LAYOUT_NAME(btree))
                                   : pmemobj_create(path, POBJ_LAYOUT_NAME(btree), size_bytes, 0600);
    if (pool == NULL) {
        return errno;
    }
    tree = D_RW((TOID(struct tree))POBJ_ROOT(pool, struct tree));
    return tree != NULL ? 0 : ENOMEM;
}

void store_close(void) { pmemobj_close(pool); }
const char* store_name(void) { return "btree hand-annotated"; }
const char* store_error(void) { return pmemobj_errormsg(); }
