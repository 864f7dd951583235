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
        : map_(static_cast<Map*>(E::root(name, sizeof(Map)))), value_bytes_(value_bytes)
    {
        typename E::template Operation<1> operation;
        operation.lock(map_->making);
        if (map_->buckets == nullptr) {
            auto* table = static_cast<Bucket*>(E::allocate_aligned(64, buckets * sizeof(Bucket)));
            std::memset(static_cast<void*>(table), 0, buckets * sizeof(Bucket));
            map_->bucket_count = buckets;
            map_->buckets = table;
        }
    }

    [[nodiscard]] bool get(unsigned, std::uint64_t key, std::span<std::byte> out)
    {
        Bucket& bucket = bucket_of(key);
        typename E::template Reading<1> reading;
        reading.lock(bucket.mutex);
        const Node* node = bucket.first;
        while (node != nullptr && node->key != key) {
            node = node->next;
        }
        if (node == nullptr) {
            return false;
        }
        std::memcpy(out.data(), node + 1, out.size());
        return true;
    }

    void put(unsigned, std::uint64_t key, std::span<const std::byte> value)
    {
        Bucket& bucket = bucket_of(key);
        typename E::template Operation<1> operation;
        operation.lock(bucket.mutex);
        Node* node = bucket.first;
        while (node != nullptr && node->key != key) {
            node = node->next;
        }
        if (node != nullptr) {
            E::about_to_write(node + 1, value.size());
            std::memcpy(static_cast<void*>(node + 1), value.data(), value.size());
            return;
        }
        node = static_cast<Node*>(E::allocate(sizeof(Node) + value_bytes_));
        node->key = key;
        E::init(node->next, static_cast<Node*>(bucket.first));
        std::memcpy(static_cast<void*>(node + 1), value.data(), value.size());
        bucket.first = node;
    }

    bool remove(unsigned, std::uint64_t key)
    {
        Bucket& bucket = bucket_of(key);
        typename E::template Operation<1> operation;
        operation.lock(bucket.mutex);
        NodeLink* link = &bucket.first;
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
            for (const Node* node = map_->buckets[i].first; node != nullptr; node = node->next) {
                visit(node->key, std::span(reinterpret_cast<const std::byte*>(node + 1), value_bytes_));
            }
        }
    }

private:
    struct Node;
    using NodeLink = typename E::template Durable<Node*>;
    /// The value's bytes lie behind it.
    struct Node {
        std::uint64_t key;
        NodeLink next;
    };
    struct Bucket {
        typename E::Mutex mutex;
        NodeLink first;
    };
    struct Map {
        typename E::Mutex making;
        typename E::template Durable<Bucket*> buckets;
        typename E::template Durable<std::uint64_t> bucket_count;
    };

    Bucket& bucket_of(std::uint64_t key) const noexcept
    {
        Bucket* table = map_->buckets;
        return table[(key * 0x9e3779b97f4a7c15u >> 20) & (map_->bucket_count - 1)];
    }

    Map* map_;
    std::size_t value_bytes_;
};

}  // namespace bench
