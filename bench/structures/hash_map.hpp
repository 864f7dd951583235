#pragma once
// A hash map with a mutex for each bucket, 8-byte keys, values of one size: the workload of most papers.
// An operation locks one bucket: one failure-atomic operation, the allocation of a node included.
//
// Where nodes cannot change (hash_nodes.hpp), a bucket's first node is the one logged variable. What would change a node puts new ones in
// the place of it and of those before it; there is about one in a bucket.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "../engines/engine.hpp"
#include "../harness/bucket_of_key.hpp"
#include "hash_nodes.hpp"

namespace bench {

template <MemoryEngine E, class Nodes>
class HashMapOf {
    using Node = typename Nodes::Node;

public:
    HashMapOf(const char* name, std::uint64_t buckets, std::size_t value_bytes) : map_(E::template named<Map>(name)), nodes_(value_bytes)
    {
        typename E::template Operation<1> operation;
        operation.lock(map_->making);
        if (map_->buckets == nullptr) {
            map_->bucket_count = buckets;
            map_->buckets = E::template make_array<Bucket>(buckets);
        }
    }

    [[nodiscard]] bool get(unsigned, std::uint64_t key, std::span<std::byte> out)
    {
        Bucket& bucket = bucket_of(key);
        typename E::template Reading<1> reading;
        reading.lock(bucket.mutex);
        const Node* node = bucket.value;
        while (node != nullptr && Nodes::key_of(*node) != key) {
            node = Nodes::next_of(*node);
        }
        if (node == nullptr) {
            return false;
        }
        nodes_.read(*node, out);
        return true;
    }

    void put(unsigned, std::uint64_t key, std::span<const std::byte> value)
    {
        Bucket& bucket = bucket_of(key);
        typename E::template Operation<1> operation;
        operation.lock(bucket.mutex);
        Node* node = bucket.value;
        while (node != nullptr && Nodes::key_of(*node) != key) {
            node = Nodes::next_of(*node);
        }
        if (node == nullptr) {
            bucket.value = nodes_.make(key, value, bucket.value);
        } else if constexpr (Nodes::may_change) {
            nodes_.write(*node, value);
        } else {
            bucket.value = nodes_.make(key, value, chain_without(bucket.value, node));
        }
    }

    bool remove(unsigned, std::uint64_t key)
    {
        Bucket& bucket = bucket_of(key);
        typename E::template Operation<1> operation;
        operation.lock(bucket.mutex);
        Node* node = bucket.value;
        Node* before = nullptr;
        while (node != nullptr && Nodes::key_of(*node) != key) {
            before = node;
            node = Nodes::next_of(*node);
        }
        if (node == nullptr) {
            return false;
        }
        if constexpr (!Nodes::may_change) {
            bucket.value = chain_without(bucket.value, node);
            return true;
        }
        if (before == nullptr) {
            bucket.value = Nodes::next_of(*node);
        } else {
            Nodes::link(*before, Nodes::next_of(*node));
        }
        E::deallocate(node);
        return true;
    }

    void settle() { E::settle(); }

    /// Calls visit(key, value) for every key. No other thread may be running.
    template <class Visit>
    void for_each(Visit visit) const
    {
        std::vector<std::byte> value(nodes_.value_bytes());
        for (std::uint64_t i = 0; i < map_->bucket_count; ++i) {
            for (Node* node = map_->buckets[i].value; node != nullptr; node = Nodes::next_of(*node)) {
                nodes_.read(*node, value);
                visit(Nodes::key_of(*node), std::span<const std::byte>(value));
            }
        }
    }

private:
    /// The value is the first node.
    using Bucket = typename E::template Guarded<Node*>;
    struct Map {
        typename E::Mutex making;
        typename E::template Durable<Bucket*> buckets;
        typename E::template Durable<std::uint64_t> bucket_count;
    };

    /// The nodes of a bucket but for `gone`: those before it made again, those after it as they are.
    Node* chain_without(Node* first, Node* gone) const
        requires(!Nodes::may_change)
    {
        Node* chain = Nodes::next_of(*gone);
        for (Node* node = first; node != gone;) {
            Node* const next = Nodes::next_of(*node);
            chain = nodes_.copy(*node, chain);
            E::deallocate(node);
            node = next;
        }
        E::deallocate(gone);
        return chain;
    }

    Bucket& bucket_of(std::uint64_t key) const noexcept
    {
        Bucket* table = map_->buckets;
        return table[bucket_of_key(key, map_->bucket_count)];
    }

    Map* map_;
    Nodes nodes_;
};

/// Picks the nodes.
template <MemoryEngine E>
class HashMap {
    static constexpr bool has_pairs = E::has_spare_bytes;
    using OfBytes = HashMapOf<E, ByteNodes<E>>;
    using OfPairs = std::conditional_t<has_pairs, HashMapOf<E, PairNodes<E>>, OfBytes>;

public:
    /// Finds the map by its name, or makes an empty one. `buckets`: a power of two.
    HashMap(const char* name, std::uint64_t buckets, std::size_t value_bytes)
    {
        if (has_pairs && value_bytes == PairNodes<E>::value_bytes()) {
            pairs_.emplace(name, buckets, value_bytes);
        } else {
            bytes_.emplace(name, buckets, value_bytes);
        }
    }

    [[nodiscard]] bool get(unsigned thread, std::uint64_t key, std::span<std::byte> out)
    {
        return with_map([&](auto& map) { return map.get(thread, key, out); });
    }
    void put(unsigned thread, std::uint64_t key, std::span<const std::byte> value)
    {
        with_map([&](auto& map) { map.put(thread, key, value); });
    }
    bool remove(unsigned thread, std::uint64_t key)
    {
        return with_map([&](auto& map) { return map.remove(thread, key); });
    }
    void settle() { E::settle(); }
    template <class Visit>
    void for_each(Visit visit) const
    {
        const_cast<HashMap&>(*this).with_map([&](const auto& map) { map.for_each(visit); });
    }

private:
    template <class Use>
    auto with_map(Use use)
    {
        if constexpr (has_pairs) {
            if (pairs_) {
                return use(*pairs_);
            }
        }
        return use(*bytes_);
    }

    std::optional<OfBytes> bytes_;
    std::optional<OfPairs> pairs_;
};

}  // namespace bench
