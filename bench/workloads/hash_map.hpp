#pragma once
// A hash map with a mutex for each bucket, 8-byte keys and values: the workload of most papers.
// An operation locks one bucket: one FASE, the allocation of a node included.

#include <cstdint>
#include <pthread.h>

#include "../harness/memory.hpp"

namespace bench {

template <Memory M>
class HashMap {
public:
    /// Finds the map in the memory's root, or makes an empty one with `buckets` buckets (a power of two).
    HashMap(const char* root_name, std::uint64_t buckets)
        : map_(static_cast<Map*>(M::root(root_name, sizeof(Map))))
    {
        static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&making);
        if (map_->buckets == nullptr) {
            auto* table = static_cast<Bucket*>(M::allocate(buckets * sizeof(Bucket)));
            for (std::uint64_t i = 0; i < buckets; ++i) {
                pthread_mutex_init(&table[i].lock, nullptr);
                table[i].first = nullptr;
            }
            map_->bucket_count = buckets;
            map_->buckets = table;
        }
        pthread_mutex_unlock(&making);
    }

    [[nodiscard]] bool get(std::uint64_t key, std::uint64_t& value)
    {
        Bucket& bucket = bucket_of(key);
        pthread_mutex_lock(&bucket.lock);
        const Node* node = bucket.first;
        while (node != nullptr && node->key != key) {
            node = node->next;
        }
        if (node != nullptr) {
            value = node->value;
        }
        pthread_mutex_unlock(&bucket.lock);
        return node != nullptr;
    }

    /// False: the key was there; its value is overwritten.
    bool insert(std::uint64_t key, std::uint64_t value)
    {
        Bucket& bucket = bucket_of(key);
        pthread_mutex_lock(&bucket.lock);
        Node* node = bucket.first;
        while (node != nullptr && node->key != key) {
            node = node->next;
        }
        const bool added = node == nullptr;
        if (added) {
            node = static_cast<Node*>(M::allocate(sizeof(Node)));
            node->key = key;
            node->next = bucket.first;
            bucket.first = node;
        }
        node->value = value;
        pthread_mutex_unlock(&bucket.lock);
        return added;
    }

    bool remove(std::uint64_t key)
    {
        Bucket& bucket = bucket_of(key);
        pthread_mutex_lock(&bucket.lock);
        Node** link = &bucket.first;
        while (*link != nullptr && (*link)->key != key) {
            link = &(*link)->next;
        }
        Node* node = *link;
        if (node != nullptr) {
            *link = node->next;
            M::deallocate(node);
        }
        pthread_mutex_unlock(&bucket.lock);
        return node != nullptr;
    }

private:
    struct Node {
        std::uint64_t key;
        std::uint64_t value;
        Node* next;
    };
    struct Bucket {
        pthread_mutex_t lock;
        Node* first;
    };
    struct Map {
        Bucket* buckets;
        std::uint64_t bucket_count;
    };

    Bucket& bucket_of(std::uint64_t key) const noexcept
    {
        return map_->buckets[(key * 0x9e3779b97f4a7c15u >> 20) & (map_->bucket_count - 1)];
    }

    Map* map_;
};

}  // namespace bench
