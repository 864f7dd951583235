#pragma once
// A B+tree with locks, 8-byte keys and values; written for speed in ordinary memory, durable or not.
//
// Locks. A leaf has a mutex that guards its keys and values. The shape of the tree (which node points to which, and
// the separating keys) is guarded by one readers-writer lock, split into a mutex for each thread: a reader takes its own, in
// a cache line that nobody else writes, so readers do not disturb each other; a split takes all of them. With a mutex in
// every inner node instead, each operation would write the root's cache line, and two threads would
// spend their time passing it to and fro.
// Order: shape, then one leaf. So an operation is one FASE, from its shape lock to the matching unlock.
//
// Keys are never removed here; leaves only split.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <pthread.h>

#include "../harness/memory.hpp"

namespace bench {

template <Memory M>
class BTree {
public:
    static constexpr unsigned threads_max = 16;

    /// Finds the tree in the memory's root, or makes an empty one.
    explicit BTree(const char* root_name) : tree_(static_cast<Tree*>(M::root(root_name, sizeof(Tree))))
    {
        const Exclusive exclusive(*tree_);
        if (tree_->root == nullptr) {
            tree_->root = make_leaf();
        }
    }

    [[nodiscard]] bool get(unsigned thread, std::uint64_t key, std::uint64_t& value)
    {
        const Guard shape(tree_->shape[thread].lock);
        Leaf* leaf = descend(key);
        const Guard locked(leaf->lock);
        const std::uint32_t at = position(leaf->keys, leaf->count, key);
        if (at == leaf->count || leaf->keys[at] != key) {
            return false;
        }
        value = leaf->values[at];
        return true;
    }

    /// Inserts the key, or overwrites its value.
    void put(unsigned thread, std::uint64_t key, std::uint64_t value)
    {
        {
            const Guard shape(tree_->shape[thread].lock);
            Leaf* leaf = descend(key);
            const Guard locked(leaf->lock);
            if (put_into(*leaf, key, value)) {
                return;
            }
        }
        const Exclusive exclusive(*tree_);
        put_with_split(key, value);
    }

    /// True if every key is in order and below its separator. No other thread may be running.
    [[nodiscard]] bool ordered() const { return ordered(tree_->root, tree_->height, 0, UINT64_MAX); }

private:
    static constexpr std::uint32_t leaf_entries = 59;    // a leaf is 1024 bytes
    static constexpr std::uint32_t inner_children = 63;  // an inner node is 1024 bytes

    struct Leaf {
        pthread_mutex_t lock;
        std::uint32_t count;
        std::uint32_t unused;
        std::uint64_t keys[leaf_entries];  ///< ascending
        std::uint64_t values[leaf_entries];
    };
    /// children[i] holds the keys below keys[i] and not below keys[i - 1].
    struct Inner {
        std::uint32_t count;  ///< children
        std::uint64_t keys[inner_children - 1];
        void* children[inner_children];
    };
    static_assert(sizeof(Leaf) <= 1024 && sizeof(Inner) <= 1024);

    struct Shard {
        alignas(64) pthread_mutex_t lock;
    };
    /// Zeroed memory is an empty tree with free locks.
    struct Tree {
        Shard shape[threads_max];
        void* root;  ///< a Leaf where height is 0, else an Inner
        std::uint32_t height;
    };

    class Guard {
    public:
        explicit Guard(pthread_mutex_t& lock) noexcept : lock_(lock) { pthread_mutex_lock(&lock_); }
        ~Guard() { pthread_mutex_unlock(&lock_); }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

    private:
        pthread_mutex_t& lock_;
    };
    class Exclusive {
    public:
        explicit Exclusive(Tree& tree) noexcept : tree_(tree)
        {
            for (Shard& shard : tree_.shape) {
                pthread_mutex_lock(&shard.lock);
            }
        }
        ~Exclusive()
        {
            for (unsigned i = threads_max; i-- > 0;) {
                pthread_mutex_unlock(&tree_.shape[i].lock);
            }
        }
        Exclusive(const Exclusive&) = delete;
        Exclusive& operator=(const Exclusive&) = delete;

    private:
        Tree& tree_;
    };

    static Leaf* leaf_of(void* node) noexcept { return static_cast<Leaf*>(node); }
    static Inner* inner_of(void* node) noexcept { return static_cast<Inner*>(node); }

    static Leaf* make_leaf()
    {
        auto* leaf = static_cast<Leaf*>(M::allocate_aligned(64, sizeof(Leaf)));
        pthread_mutex_init(&leaf->lock, nullptr);
        leaf->count = 0;
        return leaf;
    }

    /// First index whose key is not below `key`. Without branches that depend on the keys.
    static std::uint32_t position(const std::uint64_t* keys, std::uint32_t count, std::uint64_t key) noexcept
    {
        const std::uint64_t* base = keys;
        while (count > 0) {
            const std::uint32_t half = count / 2;
            const bool right = base[half] < key;
            base = right ? base + half + 1 : base;
            count = right ? count - half - 1 : half;
        }
        return static_cast<std::uint32_t>(base - keys);
    }
    static std::uint32_t child_index(const Inner& inner, std::uint64_t key) noexcept
    {
        const std::uint32_t at = position(inner.keys, inner.count - 1, key);
        return at < inner.count - 1 && inner.keys[at] == key ? at + 1 : at;
    }

    Leaf* descend(std::uint64_t key) const noexcept
    {
        void* node = tree_->root;
        for (std::uint32_t level = tree_->height; level > 0; --level) {
            const Inner& inner = *inner_of(node);
            node = inner.children[child_index(inner, key)];
        }
        return leaf_of(node);
    }

    /// False: the key is new and the leaf is full.
    static bool put_into(Leaf& leaf, std::uint64_t key, std::uint64_t value) noexcept
    {
        const std::uint32_t at = position(leaf.keys, leaf.count, key);
        if (at < leaf.count && leaf.keys[at] == key) {
            leaf.values[at] = value;
            return true;
        }
        if (leaf.count == leaf_entries) {
            return false;
        }
        std::memmove(leaf.keys + at + 1, leaf.keys + at, (leaf.count - at) * sizeof(std::uint64_t));
        std::memmove(leaf.values + at + 1, leaf.values + at, (leaf.count - at) * sizeof(std::uint64_t));
        leaf.keys[at] = key;
        leaf.values[at] = value;
        ++leaf.count;
        return true;
    }

    // The tree is locked as a whole. Full inner nodes are split on the way down, so a split never climbs.
    void put_with_split(std::uint64_t key, std::uint64_t value)
    {
        if (tree_->height > 0 ? inner_of(tree_->root)->count == inner_children
                              : leaf_of(tree_->root)->count == leaf_entries) {
            auto* grown = static_cast<Inner*>(M::allocate_aligned(64, sizeof(Inner)));
            grown->count = 1;
            grown->children[0] = tree_->root;
            split_child(*grown, 0, tree_->height);
            tree_->root = grown;
            ++tree_->height;
        }
        void* node = tree_->root;
        for (std::uint32_t level = tree_->height; level > 0; --level) {
            Inner& inner = *inner_of(node);
            std::uint32_t at = child_index(inner, key);
            const bool full = level > 1 ? inner_of(inner.children[at])->count == inner_children
                                        : leaf_of(inner.children[at])->count == leaf_entries;
            if (full) {
                split_child(inner, at, level - 1);
                at = child_index(inner, key);
            }
            node = inner.children[at];
        }
        put_into(*leaf_of(node), key, value);
    }

    /// Splits the full child `at`, which lies `level` levels above the leaves; the parent has room.
    static void split_child(Inner& parent, std::uint32_t at, std::uint32_t level)
    {
        std::uint64_t separator = 0;
        void* right = level > 0 ? split_inner(*inner_of(parent.children[at]), separator)
                                : split_leaf(*leaf_of(parent.children[at]), separator);
        std::move_backward(parent.children + at + 1, parent.children + parent.count,
                           parent.children + parent.count + 1);
        std::move_backward(parent.keys + at, parent.keys + parent.count - 1, parent.keys + parent.count);
        parent.children[at + 1] = right;
        parent.keys[at] = separator;
        ++parent.count;
    }
    static void* split_leaf(Leaf& left, std::uint64_t& separator)
    {
        Leaf* right = make_leaf();
        const std::uint32_t kept = left.count / 2;
        right->count = left.count - kept;
        std::copy_n(left.keys + kept, right->count, right->keys);
        std::copy_n(left.values + kept, right->count, right->values);
        left.count = kept;
        separator = right->keys[0];
        return right;
    }
    static void* split_inner(Inner& left, std::uint64_t& separator)
    {
        auto* right = static_cast<Inner*>(M::allocate_aligned(64, sizeof(Inner)));
        const std::uint32_t kept = left.count / 2;
        right->count = left.count - kept;
        std::copy_n(left.children + kept, right->count, right->children);
        std::copy_n(left.keys + kept, right->count - 1, right->keys);
        separator = left.keys[kept - 1];
        left.count = kept;
        return right;
    }

    static bool ordered(void* node, std::uint32_t level, std::uint64_t low, std::uint64_t high)
    {
        if (level == 0) {
            const Leaf& leaf = *leaf_of(node);
            return std::is_sorted(leaf.keys, leaf.keys + leaf.count) &&
                   std::all_of(leaf.keys, leaf.keys + leaf.count,
                               [=](std::uint64_t key) { return key >= low && key < high; });
        }
        const Inner& inner = *inner_of(node);
        for (std::uint32_t i = 0; i < inner.count; ++i) {
            const std::uint64_t child_low = i == 0 ? low : inner.keys[i - 1];
            const std::uint64_t child_high = i + 1 == inner.count ? high : inner.keys[i];
            if (child_low > child_high || !ordered(inner.children[i], level - 1, child_low, child_high)) {
                return false;
            }
        }
        return true;
    }

    Tree* tree_;
};

}  // namespace bench
