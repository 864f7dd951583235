#pragma once
// A hash map with a mutex for each bucket, 8-byte keys, values of one size: the workload of most papers.
// An operation locks one bucket: one failure-atomic operation, the allocation of a node included.
//
// Where the engine takes back only what it logs by name, nodes never change once they are linked, and so need no log: a bucket's first
// node is the one logged variable. What would change a node puts new ones in the place of it and of those before it; there is about
// one in a bucket.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "../engines/engine.hpp"

namespace bench {

template <MemoryEngine E>
class HashMap {
public:
    /// Finds the map by its name, or makes an empty one. `buckets`: a power of two.
    HashMap(const char* name, std::uint64_t buckets, std::size_t value_bytes)
        : map_(E::template named<Map>(name)), value_bytes_(value_bytes), nodes_(value_at + value_bytes)
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
        while (node != nullptr && node->key != key) {
            node = node->next;
        }
        if (node == nullptr) {
            return false;
        }
        std::memcpy(out.data(), value_of(node), out.size());
        return true;
    }

    void put(unsigned, std::uint64_t key, std::span<const std::byte> value)
    {
        Bucket& bucket = bucket_of(key);
        typename E::template Operation<1> operation;
        operation.lock(bucket.mutex);
        Node* node = bucket.value;
        while (node != nullptr && node->key != key) {
            node = node->next;
        }
        if (node == nullptr) {
            bucket.value = make_node(key, value, bucket.value);
        } else if constexpr (E::takes_back_bytes) {
            E::about_to_write(value_of(node), value.size());
            std::memcpy(value_of(node), value.data(), value.size());
        } else {
            bucket.value = make_node(key, value, chain_without(bucket.value, node));
        }
    }

    bool remove(unsigned, std::uint64_t key)
    {
        Bucket& bucket = bucket_of(key);
        typename E::template Operation<1> operation;
        operation.lock(bucket.mutex);
        Node* node = bucket.value;
        Node* before = nullptr;
        while (node != nullptr && node->key != key) {
            before = node;
            node = node->next;
        }
        if (node == nullptr) {
            return false;
        }
        if constexpr (E::takes_back_bytes) {
            NodeLink& link = before == nullptr ? bucket.value : before->next;
            link = static_cast<Node*>(node->next);
            E::deallocate(node);
        } else {
            bucket.value = chain_without(bucket.value, node);
        }
        return true;
    }

    void settle() { E::settle(); }

    /// Calls visit(key, value) for every key. No other thread may be running.
    template <class Visit>
    void for_each(Visit visit) const
    {
        for (std::uint64_t i = 0; i < map_->bucket_count; ++i) {
            for (Node* node = map_->buckets[i].value; node != nullptr; node = node->next) {
                visit(node->key, std::span<const std::byte>(value_of(node), value_bytes_));
            }
        }
    }

private:
    struct Node;
    using NodeLink = std::conditional_t<E::takes_back_bytes, typename E::template Durable<Node*>, Node*>;
    /// The value's bytes lie behind the key.
    struct Node {
        NodeLink next;
        std::uint64_t key;
    };
    static constexpr std::size_t value_at = sizeof(NodeLink) + sizeof(std::uint64_t);
    /// The value is the first node.
    using Bucket = typename E::template Guarded<Node*>;
    struct Map {
        typename E::Mutex making;
        typename E::template Durable<Bucket*> buckets;
        typename E::template Durable<std::uint64_t> bucket_count;
    };

    static std::byte* value_of(Node* node) noexcept { return reinterpret_cast<std::byte*>(node) + value_at; }
    static const std::byte* value_of(const Node* node) noexcept { return reinterpret_cast<const std::byte*>(node) + value_at; }
    Node* make_node(std::uint64_t key, std::span<const std::byte> value, Node* next) const
    {
        Node* const node = nodes_.make();
        node->key = key;
        if constexpr (E::takes_back_bytes) {
            E::init(node->next, next);
        } else {
            node->next = next;
        }
        std::memcpy(value_of(node), value.data(), value.size());
        return node;
    }
    /// The nodes of a bucket but for `gone`: those before it anew, those behind it as they are.
    Node* chain_without(Node* first, Node* gone) const
    {
        Node* chain = gone->next;
        for (Node* node = first; node != gone;) {
            Node* const next = node->next;
            chain = make_node(node->key, {value_of(node), value_bytes_}, chain);
            E::deallocate(node);
            node = next;
        }
        E::deallocate(gone);
        return chain;
    }

    Bucket& bucket_of(std::uint64_t key) const noexcept
    {
        Bucket* table = map_->buckets;
        return table[(key * 0x9e3779b97f4a7c15u >> 20) & (map_->bucket_count - 1)];
    }

    Map* map_;
    std::size_t value_bytes_;
    typename E::template Blocks<Node> nodes_;
};

}  // namespace bench
