#pragma once
// A hash map with a mutex for each bucket, 8-byte keys, values of one size: the workload of most papers.
// An operation locks one bucket: one failure-atomic operation, the allocation of a node included.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

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
        NodeLink* link = &bucket.value;
        Node* node = *link;
        while (node != nullptr && node->key != key) {
            link = &node->next;
            node = *link;
        }
        if (node == nullptr) {
            bucket.value = make_node(key, value, bucket.value);
        } else if constexpr (E::takes_back_bytes) {
            E::about_to_write(value_of(node), value.size());
            std::memcpy(value_of(node), value.data(), value.size());
        } else {
            *link = make_node(key, value, node->next);
            E::deallocate(node);
        }
    }

    bool remove(unsigned, std::uint64_t key)
    {
        Bucket& bucket = bucket_of(key);
        typename E::template Operation<1> operation;
        operation.lock(bucket.mutex);
        NodeLink* link = &bucket.value;
        Node* node = *link;
        while (node != nullptr && node->key != key) {
            link = &node->next;
            node = *link;
        }
        if (node == nullptr) {
            return false;
        }
        *link = static_cast<Node*>(node->next);
        E::deallocate(node);
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
    using NodeLink = typename E::template Durable<Node*>;
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
        E::init(node->next, next);
        std::memcpy(value_of(node), value.data(), value.size());
        return node;
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
