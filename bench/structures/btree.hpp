#pragma once
// A B+tree with locks, 8-byte keys; values of 8 bytes lie in the leaves, longer ones in blocks of their own.
//
// Locks. A leaf has a mutex that guards its keys and values. The shape of the tree (which node points to which, and
// the separating keys) is guarded by one readers-writer lock, split into a mutex for each thread: a reader takes its own, in
// a cache line that no other thread writes, so readers do not disturb each other; a split takes all of them. With a mutex in
// every inner node instead, each operation would write the root's cache line, and two threads would
// spend their time passing it to and fro.
// Order: shape, then one leaf. An operation holds both to its end.
//
// Leaves only split: they are never merged.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "../engines/engine.hpp"

namespace bench {

template <MemoryEngine E>
class BTree {
public:
    static constexpr unsigned threads_max = 16;

    /// Finds the tree by its name, or makes an empty one.
    BTree(const char* name, std::size_t value_bytes) : tree_(static_cast<Tree*>(E::root(name, sizeof(Tree)))), value_bytes_(value_bytes)
    {
        Exclusive exclusive(*tree_);
        if (tree_->root == nullptr) {
            tree_->root = make_leaf();
        }
    }

    [[nodiscard]] bool get(unsigned thread, std::uint64_t key, std::span<std::byte> out)
    {
        typename E::template Reading<2> reading;
        reading.lock(tree_->shape[thread].lock);
        Leaf* leaf = descend(key);
        reading.lock(leaf->lock);
        const std::uint32_t at = position(leaf->keys, leaf->count, key);
        if (at == leaf->count || leaf->keys[at] != key) {
            return false;
        }
        std::memcpy(out.data(), is_inline() ? static_cast<const void*>(&leaf->values[at]) : block_of(leaf->values[at]), out.size());
        return true;
    }

    /// Inserts the key, or overwrites its value.
    void put(unsigned thread, std::uint64_t key, std::span<const std::byte> value)
    {
        {
            typename E::template Operation<2> operation;
            operation.lock(tree_->shape[thread].lock);
            Leaf* leaf = descend(key);
            operation.lock(leaf->lock);
            if (put_into(*leaf, key, value)) {
                return;
            }
        }
        Exclusive exclusive(*tree_);
        put_with_split(key, value);
    }

    /// False: it was not there. Leaves are never merged.
    bool remove(unsigned thread, std::uint64_t key)
    {
        typename E::template Operation<2> operation;
        operation.lock(tree_->shape[thread].lock);
        Leaf& leaf = *descend(key);
        operation.lock(leaf.lock);
        const std::uint32_t at = position(leaf.keys, leaf.count, key);
        if (at == leaf.count || leaf.keys[at] != key) {
            return false;
        }
        if (!is_inline()) {
            E::deallocate(block_of(leaf.values[at]));
        }
        const std::size_t behind = leaf.count - at - 1;
        announce(leaf, at, behind);
        std::memmove(leaf.keys + at, leaf.keys + at + 1, behind * sizeof(std::uint64_t));
        std::memmove(leaf.values + at, leaf.values + at + 1, behind * sizeof(std::uint64_t));
        leaf.count = leaf.count - 1;
        return true;
    }

    void settle() { E::settle(); }

    /// True if every key is in order and below its separator. No other thread may be running.
    [[nodiscard]] bool ordered() const { return ordered(tree_->root, tree_->height, 0, UINT64_MAX); }

private:
    static constexpr std::uint32_t leaf_entries = 59;    // a leaf is 1024 bytes
    static constexpr std::uint32_t inner_children = 63;  // an inner node is 1024 bytes

    struct Leaf {
        typename E::Mutex lock;
        typename E::template Durable<std::uint32_t> count;
        std::uint64_t keys[leaf_entries];  ///< ascending
        std::uint64_t values[leaf_entries];  ///< the value, or the address of its block
    };
    /// children[i] holds the keys below keys[i] and not below keys[i - 1].
    struct Inner {
        typename E::template Durable<std::uint32_t> count;  ///< children
        std::uint64_t keys[inner_children - 1];
        void* children[inner_children];
    };
    static_assert(!E::rolls_back_bytes || sizeof(typename E::Mutex) > 40 || (sizeof(Leaf) <= 1024 && sizeof(Inner) <= 1024));

    struct Shard {
        alignas(64) typename E::Mutex lock;
    };
    /// Zeroed memory is an empty tree with free locks.
    struct Tree {
        Shard shape[threads_max];
        typename E::template Durable<void*> root;  ///< a Leaf where height is 0, otherwise an Inner
        typename E::template Durable<std::uint32_t> height;
    };

    /// One operation that has the whole tree to itself.
    class Exclusive {
    public:
        explicit Exclusive(Tree& tree)
        {
            for (Shard& shard : tree.shape) {
                operation_.lock(shard.lock);
            }
        }

    private:
        typename E::template Operation<threads_max> operation_;
    };

    [[nodiscard]] bool is_inline() const noexcept { return value_bytes_ == sizeof(std::uint64_t); }
    static void* block_of(std::uint64_t word) noexcept { return reinterpret_cast<void*>(word); }  // NOLINT: as it was stored

    static Leaf* leaf_of(void* node) noexcept { return static_cast<Leaf*>(node); }
    static Inner* inner_of(void* node) noexcept { return static_cast<Inner*>(node); }

    static Leaf* make_leaf()
    {
        auto* leaf = static_cast<Leaf*>(E::allocate_aligned(64, sizeof(Leaf)));
        std::memset(static_cast<void*>(&leaf->lock), 0, sizeof leaf->lock);
        E::init(leaf->count, 0u);
        return leaf;
    }
    /// Announces stores to `entries` keys and values after `at`.
    static void announce(Leaf& leaf, std::size_t at, std::size_t entries)
    {
        E::about_to_write(leaf.keys + at, entries * sizeof(std::uint64_t));
        E::about_to_write(leaf.values + at, entries * sizeof(std::uint64_t));
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
    bool put_into(Leaf& leaf, std::uint64_t key, std::span<const std::byte> value)
    {
        const std::uint32_t at = position(leaf.keys, leaf.count, key);
        if (at < leaf.count && leaf.keys[at] == key) {
            void* place = is_inline() ? static_cast<void*>(&leaf.values[at]) : block_of(leaf.values[at]);
            E::about_to_write(place, value.size());
            std::memcpy(place, value.data(), value.size());
            return true;
        }
        if (leaf.count == leaf_entries) {
            return false;
        }
        const std::size_t behind = leaf.count - at;
        announce(leaf, at, behind + 1);
        std::memmove(leaf.keys + at + 1, leaf.keys + at, behind * sizeof(std::uint64_t));
        std::memmove(leaf.values + at + 1, leaf.values + at, behind * sizeof(std::uint64_t));
        leaf.keys[at] = key;
        if (is_inline()) {
            std::memcpy(&leaf.values[at], value.data(), value.size());
        } else {
            void* block = E::allocate(value.size());
            std::memcpy(block, value.data(), value.size());
            leaf.values[at] = reinterpret_cast<std::uint64_t>(block);
        }
        leaf.count = leaf.count + 1;
        return true;
    }

    // The tree is locked as a whole. Full inner nodes are split on the way down, so a split never climbs.
    void put_with_split(std::uint64_t key, std::span<const std::byte> value)
    {
        if (tree_->height > 0 ? inner_of(tree_->root)->count == inner_children : leaf_of(tree_->root)->count == leaf_entries) {
            auto* grown = static_cast<Inner*>(E::allocate_aligned(64, sizeof(Inner)));
            E::init(grown->count, 1u);
            grown->children[0] = static_cast<void*>(tree_->root);
            split_child(*grown, 0, tree_->height);
            tree_->root = static_cast<void*>(grown);
            tree_->height = tree_->height + 1;
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
        E::about_to_write(parent.children + at + 1, (parent.count - at) * sizeof(void*));
        E::about_to_write(parent.keys + at, (parent.count - at) * sizeof(std::uint64_t));
        std::move_backward(parent.children + at + 1, parent.children + parent.count, parent.children + parent.count + 1);
        std::move_backward(parent.keys + at, parent.keys + parent.count - 1, parent.keys + parent.count);
        parent.children[at + 1] = right;
        parent.keys[at] = separator;
        parent.count = parent.count + 1;
    }
    static void* split_leaf(Leaf& left, std::uint64_t& separator)
    {
        Leaf* right = make_leaf();
        const std::uint32_t kept = left.count / 2;
        const std::uint32_t moved = left.count - kept;
        E::init(right->count, moved);
        std::copy_n(left.keys + kept, moved, right->keys);
        std::copy_n(left.values + kept, moved, right->values);
        left.count = kept;
        separator = right->keys[0];
        return right;
    }
    static void* split_inner(Inner& left, std::uint64_t& separator)
    {
        auto* right = static_cast<Inner*>(E::allocate_aligned(64, sizeof(Inner)));
        const std::uint32_t kept = left.count / 2;
        const std::uint32_t moved = left.count - kept;
        E::init(right->count, moved);
        std::copy_n(left.children + kept, moved, right->children);
        std::copy_n(left.keys + kept, moved - 1, right->keys);
        separator = left.keys[kept - 1];
        left.count = kept;
        return right;
    }

    static bool ordered(void* node, std::uint32_t level, std::uint64_t low, std::uint64_t high)
    {
        if (level == 0) {
            const Leaf& leaf = *leaf_of(node);
            return std::is_sorted(leaf.keys, leaf.keys + leaf.count) &&
                   std::all_of(leaf.keys, leaf.keys + leaf.count, [=](std::uint64_t key) { return key >= low && key < high; });
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
    std::size_t value_bytes_;
};

}  // namespace bench
