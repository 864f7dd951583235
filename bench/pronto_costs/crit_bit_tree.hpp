#pragma once
// An ordered map as a crit-bit tree in a libpmemobj pool, with transactions by hand, as a C programmer of libpmemobj would write it.
// Of the trees that PMDK has examples of it changes the least in an insertion: one link is snapshotted, whatever the size of the tree.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <libpmemobj.h>
#include <string_view>

#include "pmemobj_map_pool.hpp"
#include "records.hpp"

namespace bench {

/// Keys of key_bytes.
class CritBitTree {
public:
    /// The part in the pool; zeroes are an empty tree.
    struct Root {
        PMEMoid top;  ///< a Leaf or an Inner
        std::uint64_t count;
    };

    CritBitTree(MapPool& pool, Root& root) noexcept : pool_(pool), root_(root) {}

    /// Inserts the key, or gives it another value, as one transaction.
    void put(std::string_view key, std::string_view value)
    {
        const MapTransaction transaction(pool_);
        PMEMoid* link = &root_.top;
        if (OID_IS_NULL(*link)) {
            replace_link(*link, make_leaf(key, value));
            return;
        }
        const Leaf& nearest = *leaf_at(nearest_leaf(key));
        const unsigned bit = first_difference(key, {nearest.key, key_bytes});
        while (is_inner(*link) && inner_at(*link)->bit < bit) {
            link = &inner_at(*link)->child[bit_of(key, inner_at(*link)->bit)];
        }
        if (bit == bits) {
            const PMEMoid old = *link;
            replace_link(*link, make_leaf(key, value), false);
            MapPool::free_in_transaction(old);
            return;
        }
        const PMEMoid made = MapPool::allocate_in_transaction(sizeof(Inner), type_inner);
        Inner& inner = *inner_at(made);
        inner.bit = bit;
        inner.child[bit_of(key, bit)] = make_leaf(key, value);
        inner.child[1 - bit_of(key, bit)] = *link;
        replace_link(*link, made);
    }
    /// Empty: there is no such key.
    [[nodiscard]] std::string_view get(std::string_view key) const
    {
        if (OID_IS_NULL(root_.top)) {
            return {};
        }
        const Leaf& leaf = *leaf_at(nearest_leaf(key));
        return std::memcmp(leaf.key, key.data(), key_bytes) == 0 ? leaf.whole_value() : std::string_view();
    }
    [[nodiscard]] std::uint64_t size() const noexcept { return root_.count; }

    /// Not atomic.
    void clear()
    {
        free_all(root_.top);
        root_ = {};
        pool_.persist(&root_, sizeof root_);
    }

private:
    static constexpr unsigned bits = key_bytes * 8;
    static constexpr std::uint64_t type_leaf = 1;
    static constexpr std::uint64_t type_inner = 2;

    struct Leaf {
        char key[key_bytes];
        std::uint64_t value_bytes;

        /// The value lies after the node.
        [[nodiscard]] char* value() noexcept { return reinterpret_cast<char*>(this + 1); }
        [[nodiscard]] std::string_view whole_value() const noexcept { return {reinterpret_cast<const char*>(this + 1), value_bytes}; }
    };
    struct Inner {
        PMEMoid child[2];
        std::uint32_t bit;  ///< the first that differs between the two, counted from the front
    };

    static bool is_inner(PMEMoid node) noexcept { return pmemobj_type_num(node) == type_inner; }
    static Leaf* leaf_at(PMEMoid node) noexcept { return static_cast<Leaf*>(pmemobj_direct(node)); }
    static Inner* inner_at(PMEMoid node) noexcept { return static_cast<Inner*>(pmemobj_direct(node)); }

    static unsigned bit_of(std::string_view key, unsigned bit) noexcept
    {
        return static_cast<unsigned char>(key[bit / 8]) >> (7 - bit % 8) & 1;
    }
    /// `bits` where they are equal.
    static unsigned first_difference(std::string_view one, std::string_view other) noexcept
    {
        for (unsigned at = 0; at < key_bytes; ++at) {
            const unsigned differing = static_cast<unsigned char>(one[at]) ^ static_cast<unsigned char>(other[at]);
            if (differing != 0) {
                return at * 8 + static_cast<unsigned>(__builtin_clz(differing)) - 24;
            }
        }
        return bits;
    }
    [[nodiscard]] PMEMoid nearest_leaf(std::string_view key) const
    {
        PMEMoid node = root_.top;
        while (is_inner(node)) {
            const Inner& inner = *inner_at(node);
            node = inner.child[bit_of(key, inner.bit)];
        }
        return node;
    }
    static PMEMoid make_leaf(std::string_view key, std::string_view value)
    {
        const PMEMoid made = MapPool::allocate_in_transaction(sizeof(Leaf) + value.size(), type_leaf);
        Leaf& leaf = *leaf_at(made);
        std::memcpy(leaf.key, key.data(), key_bytes);
        leaf.value_bytes = value.size();
        std::memcpy(leaf.value(), value.data(), value.size());
        return made;
    }
    void replace_link(PMEMoid& link, PMEMoid target, bool is_new = true)
    {
        MapPool::snapshot(&link, sizeof link);
        link = target;
        if (is_new) {
            MapPool::snapshot(&root_.count, sizeof root_.count);
            ++root_.count;
        }
    }
    static void free_all(PMEMoid node)
    {
        if (!OID_IS_NULL(node) && is_inner(node)) {
            free_all(inner_at(node)->child[0]);
            free_all(inner_at(node)->child[1]);
        }
        pmemobj_free(&node);
    }

    MapPool& pool_;
    Root& root_;
};

}  // namespace bench
