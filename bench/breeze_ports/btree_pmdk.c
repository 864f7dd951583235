/* The tree of btree.c, annotated by hand for libpmemobj: object identifiers for pointers, and one snapshot of what changes. */

#include <errno.h>
#include <libpmemobj.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

enum { tree_count = 64, keys_max = 31 };

typedef struct Forest Forest;
typedef struct Node Node;
typedef struct Value Value;
POBJ_LAYOUT_BEGIN(btree);
POBJ_LAYOUT_ROOT(btree, Forest);
POBJ_LAYOUT_TOID(btree, Node);
POBJ_LAYOUT_TOID(btree, Value);
POBJ_LAYOUT_END(btree);

struct Value {
    unsigned char bytes[STORE_VALUE_BYTES];
};

struct Node {
    uint32_t level; /* 0: a leaf */
    uint32_t count; /* keys */
    uint64_t keys[keys_max];
    PMEMoid slots[keys_max + 1]; /* leaf: value of keys[i]; else slots[i] is the child with the keys below keys[i] */
};

struct Forest {
    TOID(Node) trees[tree_count];
};

static PMEMobjpool* pool;
static Forest* forest;
static pthread_rwlock_t locks[tree_count];

static uint64_t tree_of(uint64_t key) { return (key ^ (key >> 31)) * 0x7fb5d329728ea185u >> 32 & (tree_count - 1); }

/* The first key that is not below `key`. */
static uint32_t position(const Node* node, uint64_t key)
{
    uint32_t low = 0;
    uint32_t high = node->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (node->keys[middle] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool holds(const Node* node, uint32_t at, uint64_t key) { return at < node->count && node->keys[at] == key; }

static uint32_t child_index(const Node* node, uint64_t key)
{
    const uint32_t at = position(node, key);
    return holds(node, at, key) ? at + 1 : at;
}

/* The leaf for the key, or NULL in an empty tree. */
static Node* find_leaf(uint64_t key)
{
    Node* node = D_RW(forest->trees[tree_of(key)]);
    while (node != NULL && node->level > 0) {
        node = pmemobj_direct(node->slots[child_index(node, key)]);
    }
    return node;
}

static TOID(Node) make_node(uint32_t level)
{
    TOID(Node) node = TX_ZNEW(Node);
    D_RW(node)->level = level;
    return node;
}

static TOID(Value) make_value(const void* bytes)
{
    TOID(Value) value = TX_NEW(Value);
    memcpy(D_RW(value)->bytes, bytes, STORE_VALUE_BYTES);
    return value;
}

/* Puts `key` at `at`, and `slot` at `at` in a leaf, after it in an inner node. There is room. */
static void insert_at(Node* node, uint32_t at, uint64_t key, PMEMoid slot)
{
    const uint32_t slot_at = node->level == 0 ? at : at + 1;
    const uint32_t slots = node->count + (node->level == 0 ? 0 : 1);
    pmemobj_tx_add_range_direct(&node->keys[at], (node->count - at + 1) * sizeof node->keys[0]);
    pmemobj_tx_add_range_direct(&node->slots[slot_at], (slots - slot_at + 1) * sizeof node->slots[0]);
    TX_ADD_FIELD_DIRECT(node, count);
    memmove(&node->keys[at + 1], &node->keys[at], (node->count - at) * sizeof node->keys[0]);
    memmove(&node->slots[slot_at + 1], &node->slots[slot_at], (slots - slot_at) * sizeof node->slots[0]);
    node->keys[at] = key;
    node->slots[slot_at] = slot;
    node->count += 1;
}

/* The full child `at` of a node with room becomes two. */
static void split_child(Node* parent, uint32_t at)
{
    Node* left = pmemobj_direct(parent->slots[at]);
    TOID(Node) made = make_node(left->level);
    Node* right = D_RW(made);
    const uint32_t half = left->count / 2;
    const uint32_t from = left->level == 0 ? half : half + 1; /* an inner node's middle key moves up */
    const uint32_t moved = left->count - from;
    memcpy(right->keys, &left->keys[from], moved * sizeof left->keys[0]);
    memcpy(right->slots, &left->slots[from], (moved + (left->level == 0 ? 0 : 1)) * sizeof left->slots[0]);
    right->count = moved;
    TX_ADD_FIELD_DIRECT(left, count);
    left->count = half;
    insert_at(parent, at, left->keys[half], made.oid);
}

/* The root has room. */
static void insert(Node* node, uint64_t key, const void* bytes)
{
    while (node->level > 0) {
        uint32_t at = child_index(node, key);
        const Node* child = pmemobj_direct(node->slots[at]);
        if (child->count == keys_max) {
            split_child(node, at);
            at = child_index(node, key);
        }
        node = pmemobj_direct(node->slots[at]);
    }
    TOID(Value) value = make_value(bytes);
    insert_at(node, position(node, key), key, value.oid);
}

/* The tree's root, with room for one more key. */
static Node* make_room(uint64_t tree)
{
    Node* root = D_RW(forest->trees[tree]);
    if (root != NULL && root->count < keys_max) {
        return root;
    }
    TOID(Node) top = make_node(root == NULL ? 0 : root->level + 1);
    if (root != NULL) {
        D_RW(top)->slots[0] = forest->trees[tree].oid;
        split_child(D_RW(top), 0);
    }
    TX_ADD_DIRECT(&forest->trees[tree]);
    forest->trees[tree] = top;
    return D_RW(top);
}

int store_put(uint64_t key, const void* bytes)
{
    const uint64_t tree = tree_of(key);
    int failed = 0;
    pthread_rwlock_wrlock(&locks[tree]);
    const Node* leaf = find_leaf(key);
    const uint32_t at = leaf != NULL ? position(leaf, key) : 0;
    TX_BEGIN(pool)
    {
        if (leaf != NULL && holds(leaf, at, key)) {
            Value* value = pmemobj_direct(leaf->slots[at]);
            TX_ADD_DIRECT(&value->bytes);
            memcpy(value->bytes, bytes, STORE_VALUE_BYTES);
        } else {
            insert(make_room(tree), key, bytes);
        }
    }
    TX_ONABORT { failed = ENOMEM; }
    TX_END
    pthread_rwlock_unlock(&locks[tree]);
    return failed;
}

bool store_get(uint64_t key, void* bytes)
{
    const uint64_t tree = tree_of(key);
    pthread_rwlock_rdlock(&locks[tree]);
    const Node* leaf = find_leaf(key);
    const uint32_t at = leaf != NULL ? position(leaf, key) : 0;
    const bool there = leaf != NULL && holds(leaf, at, key);
    if (there) {
        const Value* value = pmemobj_direct(leaf->slots[at]);
        memcpy(bytes, value->bytes, STORE_VALUE_BYTES);
    }
    pthread_rwlock_unlock(&locks[tree]);
    return there;
}

/* Leaves may become empty; they are not merged. */
bool store_remove(uint64_t key)
{
    const uint64_t tree = tree_of(key);
    pthread_rwlock_wrlock(&locks[tree]);
    Node* leaf = find_leaf(key);
    const uint32_t at = leaf != NULL ? position(leaf, key) : 0;
    const bool there = leaf != NULL && holds(leaf, at, key);
    if (there) {
        TX_BEGIN(pool)
        {
            pmemobj_tx_free(leaf->slots[at]);
            pmemobj_tx_add_range_direct(&leaf->keys[at], (leaf->count - at) * sizeof leaf->keys[0]);
            pmemobj_tx_add_range_direct(&leaf->slots[at], (leaf->count - at) * sizeof leaf->slots[0]);
            TX_ADD_FIELD_DIRECT(leaf, count);
            memmove(&leaf->keys[at], &leaf->keys[at + 1], (leaf->count - at - 1) * sizeof leaf->keys[0]);
            memmove(&leaf->slots[at], &leaf->slots[at + 1], (leaf->count - at - 1) * sizeof leaf->slots[0]);
            leaf->count -= 1;
            leaf->slots[leaf->count] = OID_NULL;
        }
        TX_END
    }
    pthread_rwlock_unlock(&locks[tree]);
    return there;
}

/* Keys below `node`, all in [low, high] and in order; -1 where something is wrong. */
static long check_node(const Node* node, uint64_t low, uint64_t high)
{
    for (uint32_t i = 0; i < node->count; ++i) {
        if ((i > 0 && node->keys[i - 1] >= node->keys[i]) || node->keys[i] < low || node->keys[i] > high) {
            return -1;
        }
    }
    if (node->level == 0) {
        return node->count;
    }
    long all = 0;
    for (uint32_t i = 0; i <= node->count; ++i) {
        const Node* child = pmemobj_direct(node->slots[i]);
        const long below = child->level + 1 != node->level
                               ? -1
                               : check_node(child, i == 0 ? low : node->keys[i - 1], i == node->count ? high : node->keys[i] - 1);
        if (below < 0) {
            return -1;
        }
        all += below;
    }
    return all;
}

long store_check(void)
{
    long keys = 0;
    for (uint64_t tree = 0; tree < tree_count; ++tree) {
        const long here = !TOID_IS_NULL(forest->trees[tree]) ? check_node(D_RO(forest->trees[tree]), 0, UINT64_MAX) : 0;
        if (here < 0) {
            return -1;
        }
        keys += here;
    }
    return keys;
}

static void make_locks(void)
{
    for (uint64_t tree = 0; tree < tree_count; ++tree) {
        pthread_rwlock_init(&locks[tree], NULL);
    }
}

int store_open(const char* path, size_t size_bytes)
{
    make_locks();
    pool = access(path, F_OK) == 0 ? pmemobj_open(path, POBJ_LAYOUT_NAME(btree))
                                   : pmemobj_create(path, POBJ_LAYOUT_NAME(btree), size_bytes, 0600);
    forest = pool != NULL ? D_RW(POBJ_ROOT(pool, Forest)) : NULL;
    return forest != NULL ? 0 : errno;
}

void store_close(void) { pmemobj_close(pool); }
const char* store_name(void) { return "btree pmdk"; }
const char* store_error(void) { return pmemobj_errormsg(); }
