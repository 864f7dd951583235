/* The tree of btree.c, durable by Breeze: `stillpoint cc --runtime=breeze` logs what it stores. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <stillpoint/breeze.h>

#include "store.h"

enum { tree_count = 64, keys_max = 31 };

typedef struct Value {
    unsigned char bytes[STORE_VALUE_BYTES];
} Value;

typedef struct Node {
    uint32_t level; /* 0: a leaf */
    uint32_t count; /* keys */
    uint64_t keys[keys_max];
    void* slots[keys_max + 1]; /* leaf: value of keys[i]; else slots[i] is the child with the keys below keys[i] */
} Node;

typedef struct Forest {
    Node* trees[tree_count];
} Forest;
NVM_AUTO_TYPES(Value, Node, Forest);

static NVM_POOL* pool;
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
    Node* node = forest->trees[tree_of(key)];
    while (node != NULL && node->level > 0) {
        node = node->slots[child_index(node, key)];
    }
    return node;
}

static Node* make_node(uint32_t level)
{
    Node* node = nvm_alloc(pool, NVM_TYPE_ID(Node), sizeof *node);
    if (node != NULL) {
        node->level = level;
    }
    return node;
}

static Value* make_value(const void* bytes)
{
    Value* value = nvm_alloc(pool, NVM_TYPE_ID(Value), sizeof *value);
    if (value != NULL) {
        memcpy(value->bytes, bytes, STORE_VALUE_BYTES);
    }
    return value;
}

/* Puts `key` at `at`, and `slot` at `at` in a leaf, after it in an inner node. There is room. */
static void insert_at(Node* node, uint32_t at, uint64_t key, void* slot)
{
    const uint32_t slot_at = node->level == 0 ? at : at + 1;
    const uint32_t slots = node->count + (node->level == 0 ? 0 : 1);
    memmove(&node->keys[at + 1], &node->keys[at], (node->count - at) * sizeof node->keys[0]);
    memmove(&node->slots[slot_at + 1], &node->slots[slot_at], (slots - slot_at) * sizeof node->slots[0]);
    node->keys[at] = key;
    node->slots[slot_at] = slot;
    node->count += 1;
}

/* The full child `at` of a node with room becomes two. */
static int split_child(Node* parent, uint32_t at)
{
    Node* left = parent->slots[at];
    Node* right = make_node(left->level);
    if (right == NULL) {
        return ENOMEM;
    }
    const uint32_t half = left->count / 2;
    const uint32_t from = left->level == 0 ? half : half + 1; /* an inner node's middle key moves up */
    const uint32_t moved = left->count - from;
    memcpy(right->keys, &left->keys[from], moved * sizeof left->keys[0]);
    memcpy(right->slots, &left->slots[from], (moved + (left->level == 0 ? 0 : 1)) * sizeof left->slots[0]);
    right->count = moved;
    left->count = half;
    insert_at(parent, at, left->keys[half], right);
    return 0;
}

/* The root has room. */
static int insert(Node* node, uint64_t key, const void* bytes)
{
    while (node->level > 0) {
        uint32_t at = child_index(node, key);
        const Node* child = node->slots[at];
        if (child->count == keys_max) {
            if (split_child(node, at) != 0) {
                return ENOMEM;
            }
            at = child_index(node, key);
        }
        node = node->slots[at];
    }
    Value* value = make_value(bytes);
    if (value == NULL) {
        return ENOMEM;
    }
    insert_at(node, position(node, key), key, value);
    return 0;
}

/* The tree's root, with room for one more key; NULL: no memory. */
static Node* make_room(uint64_t tree)
{
    Node* root = forest->trees[tree];
    if (root == NULL) {
        return forest->trees[tree] = make_node(0);
    }
    if (root->count < keys_max) {
        return root;
    }
    Node* top = make_node(root->level + 1);
    if (top == NULL) {
        return NULL;
    }
    top->slots[0] = root;
    if (split_child(top, 0) != 0) {
        return NULL;
    }
    return forest->trees[tree] = top;
}

int store_put(uint64_t key, const void* bytes)
{
    const uint64_t tree = tree_of(key);
    int failed = 0;
    pthread_rwlock_wrlock(&locks[tree]);
    nvm_tx_begin(pool);
    const Node* leaf = find_leaf(key);
    const uint32_t at = leaf != NULL ? position(leaf, key) : 0;
    if (leaf != NULL && holds(leaf, at, key)) {
        Value* value = leaf->slots[at];
        memcpy(value->bytes, bytes, STORE_VALUE_BYTES);
    } else {
        Node* root = make_room(tree);
        failed = root != NULL ? insert(root, key, bytes) : ENOMEM;
    }
    failed = failed == 0 ? nvm_tx_commit(pool) : failed + nvm_tx_abort(pool);
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
        const Value* value = leaf->slots[at];
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
        nvm_tx_begin(pool);
        memmove(&leaf->keys[at], &leaf->keys[at + 1], (leaf->count - at - 1) * sizeof leaf->keys[0]);
        memmove(&leaf->slots[at], &leaf->slots[at + 1], (leaf->count - at - 1) * sizeof leaf->slots[0]);
        leaf->count -= 1;
        leaf->slots[leaf->count] = NULL;
        nvm_tx_commit(pool);
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
        const Node* child = node->slots[i];
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
        const long here = forest->trees[tree] != NULL ? check_node(forest->trees[tree], 0, UINT64_MAX) : 0;
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
    pool = nvm_pool_obtain(path, size_bytes);
    forest = nvm_pool_obtain_root(pool, NVM_TYPE_ID(Forest), sizeof *forest);
    return forest != NULL ? 0 : ENOMEM;
}

void store_close(void) { nvm_pool_close(pool); }
const char* store_name(void) { return "btree breeze"; }
const char* store_error(void) { return sp_last_error(); }
