/* The paper's B+tree [NVHooks §4.3.1]: a reader-writer lock in each node, 32-byte keys, values of 1 KiB beside the leaves.
 * Written once. What makes it durable is the layer's header and the lines that say durable_.
 *
 * Locks. A thread holds a node's lock before it takes its child's, and then lets the node go (lock coupling). An insert
 * first tries with read locks down to the leaf. Where the leaf is full it starts again with write locks and keeps those
 * of the nodes that a split may reach. So what a FASE writes stays locked until the FASE has ended. */

#include DURABLE_HOOKS /* "pmdk-hooks.h", "undo-hooks.h", "pmthreads-hooks.h" or "volatile-hooks.h" */

#include <errno.h>
#include <string.h>

#include "store.h"

enum { key_bytes = 32, keys_max = 32, height_max = 16 };

struct key {
    char text[key_bytes];
};

struct node {
    durable_rwlock lock; /* guards all but `level`, which never changes */
    uint32_t level;      /* 0: a leaf */
    uint32_t count;      /* keys */
    struct key keys[keys_max];
    void* slots[keys_max + 1]; /* leaf: value of keys[i]; else slots[i] is the child with the keys below keys[i] */
};

/* Zeroed memory is an empty tree. */
struct tree {
    durable_rwlock lock; /* guards `root` */
    struct node* root;
};

/* The nodes that a thread has write-locked, from the top. */
struct held {
    struct node* nodes[height_max];
    uint32_t count;
    bool tree;
};

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
        durable_write_lock(&node->lock);
    } else {
        durable_read_lock(&node->lock);
    }
}

/* The leaf for `key`, locked, and no other lock held; NULL in an empty tree. */
static struct node* find_leaf(const struct key* key, bool for_write)
{
    durable_read_lock(&tree->lock);
    struct node* node = tree->root;
    if (node == NULL) {
        durable_unlock(&tree->lock);
        return NULL;
    }
    lock_node(node, for_write && node->level == 0);
    durable_unlock(&tree->lock);
    while (node->level > 0) {
        struct node* child = node->slots[child_index(node, key)];
        lock_node(child, for_write && node->level == 1);
        durable_unlock(&node->lock);
        node = child;
    }
    return node;
}

static struct node* make_node(uint32_t level)
{
    struct node* node = durable_allocate(sizeof *node);
    if (node != NULL) {
        memset(node, 0, sizeof *node);
        node->level = level;
    }
    return node;
}

/* Puts `key` at `at`, and `slot` at `at` in a leaf, after it in an inner node. There is room. */
static void insert_at(struct node* node, uint32_t at, const struct key* key, void* slot)
{
    const uint32_t slot_at = node->level == 0 ? at : at + 1;
    for (uint32_t i = node->count; i > at; --i) {
        node->keys[i] = node->keys[i - 1];
    }
    for (uint32_t i = node->count + (node->level == 0 ? 0 : 1); i > slot_at; --i) {
        node->slots[i] = node->slots[i - 1];
    }
    node->keys[at] = *key;
    node->slots[slot_at] = slot;
    node->count += 1;
}

/* Moves the upper half of a full node to a new one; *separator is the lowest key of the new one's subtree. */
static struct node* split(struct node* node, struct key* separator)
{
    struct node* right = make_node(node->level);
    if (right == NULL) {
        return NULL;
    }
    const uint32_t half = node->count / 2;
    const uint32_t from = node->level == 0 ? half : half + 1; /* an inner node's middle key moves up */
    const uint32_t moved = node->count - from;
    *separator = node->keys[half];
    for (uint32_t i = 0; i < moved; ++i) {
        right->keys[i] = node->keys[from + i];
        right->slots[i] = node->slots[from + i];
    }
    if (node->level > 0) {
        right->slots[moved] = node->slots[from + moved];
    }
    right->count = moved;
    node->count = half;
    return right;
}

static void unlock_held(struct held* held)
{
    for (uint32_t i = 0; i < held->count; ++i) {
        durable_unlock(&held->nodes[i]->lock);
    }
    if (held->tree) {
        durable_unlock(&tree->lock);
    }
    held->count = 0;
    held->tree = false;
}

/* Write-locks the way to the leaf; keeps what a split of the leaf can reach. The tree is not empty. */
static void lock_way(struct held* held, const struct key* key)
{
    struct node* node = tree->root;
    for (;;) {
        durable_write_lock(&node->lock);
        if (node->count < keys_max) {
            unlock_held(held);
        }
        held->nodes[held->count++] = node;
        if (node->level == 0) {
            return;
        }
        node = node->slots[child_index(node, key)];
    }
}

static void* make_value(const void* value)
{
    void* made = durable_allocate(STORE_VALUE_BYTES);
    if (made != NULL) {
        memcpy(made, value, STORE_VALUE_BYTES);
    }
    return made;
}

/* In a FASE, with the way locked: inserts into the leaf, and splits upwards as far as nodes are full. */
static int insert_with_splits(struct held* held, const struct key* key, void* slot)
{
    struct key upper = *key;
    for (uint32_t i = held->count; i-- > 0;) {
        struct node* node = held->nodes[i];
        if (node->count < keys_max) {
            insert_at(node, position(node, &upper), &upper, slot);
            return 0;
        }
        struct key separator;
        struct node* right = split(node, &separator);
        if (right == NULL) {
            return ENOMEM;
        }
        struct node* into = memcmp(upper.text, separator.text, key_bytes) < 0 ? node : right;
        insert_at(into, position(into, &upper), &upper, slot);
        upper = separator;
        slot = right;
    }
    struct node* root = make_node(tree->root->level + 1);
    if (root == NULL) {
        return ENOMEM;
    }
    root->slots[0] = tree->root;
    insert_at(root, 0, &upper, slot);
    tree->root = root;
    return 0;
}

static int put_with_way_locked(const struct key* key, const void* value)
{
    struct held held = {.count = 0, .tree = true};
    int failed = 0;
    durable_write_lock(&tree->lock);
    if (tree->root != NULL) {
        lock_way(&held, key);
    }
    durable_fase_begin();
    if (tree->root == NULL) {
        tree->root = make_node(0);
        failed = tree->root == NULL ? ENOMEM : 0;
    }
    if (held.count == 0 && failed == 0) { /* the tree was empty: no other thread can see its leaf yet */
        void* made = make_value(value);
        failed = made == NULL ? ENOMEM : 0;
        if (failed == 0) {
            insert_at(tree->root, 0, key, made);
        }
    } else if (failed == 0) {
        struct node* leaf = held.nodes[held.count - 1];
        const uint32_t at = position(leaf, key);
        if (holds(leaf, at, key)) {
            memcpy(leaf->slots[at], value, STORE_VALUE_BYTES);
        } else {
            void* made = make_value(value);
            failed = made == NULL ? ENOMEM : insert_with_splits(&held, key, made);
        }
    }
    const int aborted = durable_fase_end();
    unlock_held(&held);
    return failed != 0 ? failed : aborted;
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
        durable_unlock(&leaf->lock);
        return put_with_way_locked(&key, value);
    }
    int failed = 0;
    durable_fase_begin();
    if (there) {
        memcpy(leaf->slots[at], value, STORE_VALUE_BYTES);
    } else {
        void* made = make_value(value);
        failed = made == NULL ? ENOMEM : 0;
        if (failed == 0) {
            insert_at(leaf, at, &key, made);
        }
    }
    const int aborted = durable_fase_end();
    durable_unlock(&leaf->lock);
    return failed != 0 ? failed : aborted;
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
        memcpy(value, leaf->slots[at], STORE_VALUE_BYTES);
    }
    durable_unlock(&leaf->lock);
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
        durable_fase_begin();
        durable_release(leaf->slots[at]);
        for (uint32_t i = at; i + 1 < leaf->count; ++i) {
            leaf->keys[i] = leaf->keys[i + 1];
            leaf->slots[i] = leaf->slots[i + 1];
        }
        leaf->count -= 1;
        (void)durable_fase_end();
    }
    durable_unlock(&leaf->lock);
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
        const struct node* child = node->slots[i];
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

long store_check(void) { return tree->root == NULL ? 0 : check_node(tree->root, NULL, NULL); }

int store_open(const char* path, size_t size_bytes)
{
    const int failed = durable_open(path, size_bytes);
    if (failed != 0) {
        return failed;
    }
    tree = durable_root(sizeof *tree);
    return tree != NULL ? 0 : ENOMEM;
}

void store_close(void) { durable_close(); }
const char* store_name(void) { return "btree " DURABLE_LAYER; }
const char* store_error(void) { return durable_error(); }
