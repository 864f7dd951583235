#pragma once
// The bench's structures as transactions: a hash map, an ordered map and a queue of ordinary nodes, without a lock.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "../../harness/bucket_of_key.hpp"
#include "../../transactions/tree.hpp"
#include "../batched_filling.hpp"
#include "../engine.hpp"
#include "spht_memory.hpp"

namespace bench {

class SphtHashStore : public BatchedFilling<SphtHashStore, SphtMemory> {
public:
    SphtHashStore(const Shape& shape, const char* name, std::uint64_t keys)
        : value_bytes_(shape.value_bytes), bucket_count_(std::bit_ceil(keys / 2 + (keys < 2 ? 1 : 0))),
          buckets_(SphtMemory::named<Node*>(name, bucket_count_))
    {
    }

    [[nodiscard]] bool get(unsigned, std::uint64_t key, std::span<std::byte> out)
    {
        return SphtMemory::read_atomically([&](auto& tx) {
            for (Node* node = tx.read(bucket(key)); node != nullptr; node = tx.read(node->next)) {
                if (tx.read(node->key) == key) {
                    tx.read_bytes(node + 1, out.data(), value_bytes_);
                    return true;
                }
            }
            return false;
        });
    }
    void put(unsigned, std::uint64_t key, std::span<const std::byte> value)
    {
        if (!is_kept_for_later(key, value)) {
            SphtMemory::atomically([&](auto& tx) { put_in(tx, key, value); });
        }
    }
    template <class Tx>
    void put_in(Tx& tx, std::uint64_t key, std::span<const std::byte> value)
    {
        Node* const first = tx.read(bucket(key));
        for (Node* node = first; node != nullptr; node = tx.read(node->next)) {
            if (tx.read(node->key) == key) {
                tx.write_bytes(node + 1, value.data(), value_bytes_);
                return;
            }
        }
        Node* const made = static_cast<Node*>(tx.allocate(sizeof(Node) + value_bytes_));
        tx.write(made->key, key);
        tx.write(made->next, first);
        tx.write_bytes(made + 1, value.data(), value_bytes_);
        tx.write(bucket(key), made);
    }
    bool remove(unsigned, std::uint64_t key)
    {
        return SphtMemory::atomically([&](auto& tx) {
            Node** link = &bucket(key);
            for (Node* node = tx.read(*link); node != nullptr; node = tx.read(*link)) {
                if (tx.read(node->key) == key) {
                    tx.write(*link, tx.read(node->next));
                    tx.free(node);
                    return true;
                }
                link = &node->next;
            }
            return false;
        });
    }
    void settle() { SphtMemory::settle(); }

private:
    /// The value follows.
    struct Node {
        std::uint64_t key;
        Node* next;
    };

    [[nodiscard]] Node*& bucket(std::uint64_t key) noexcept { return buckets_[bucket_of_key(key, bucket_count_)]; }

    std::size_t value_bytes_;
    std::uint64_t bucket_count_;
    Node** buckets_;
};

class SphtTreeStore : public BatchedFilling<SphtTreeStore, SphtMemory> {
public:
    SphtTreeStore(const Shape& shape, const char* name, std::uint64_t)
        : value_bytes_(shape.value_bytes), tree_(*SphtMemory::named<Map>(name))
    {
    }

    [[nodiscard]] bool get(unsigned, std::uint64_t key, std::span<std::byte> out)
    {
        return SphtMemory::read_atomically([&](auto& tx) {
            std::byte** const value = tree_.find(tx, key);
            if (value == nullptr) {
                return false;
            }
            tx.read_bytes(tx.read(*value), out.data(), value_bytes_);
            return true;
        });
    }
    void put(unsigned, std::uint64_t key, std::span<const std::byte> value)
    {
        if (!is_kept_for_later(key, value)) {
            SphtMemory::atomically([&](auto& tx) { put_in(tx, key, value); });
        }
    }
    template <class Tx>
    void put_in(Tx& tx, std::uint64_t key, std::span<const std::byte> value)
    {
        std::byte** const found = tree_.find(tx, key);
        if (found != nullptr) {
            tx.write_bytes(tx.read(*found), value.data(), value_bytes_);
            return;
        }
        auto* const made = static_cast<std::byte*>(tx.allocate(value_bytes_));
        tx.write_bytes(made, value.data(), value_bytes_);
        tree_.insert(tx, key, made);
    }
    bool remove(unsigned, std::uint64_t key)
    {
        return SphtMemory::atomically([&](auto& tx) {
            const auto value = tree_.remove(tx, key);
            if (value) {
                tx.free(*value);
            }
            return value.has_value();
        });
    }
    void settle() { SphtMemory::settle(); }

private:
    using Map = transactional::Tree<std::byte*>;

    std::size_t value_bytes_;
    Map& tree_;
};

/// First in, first out, with an empty node in front, so that the two ends meet only where it is nearly empty.
class SphtQueue {
public:
    SphtQueue(const Shape&, const char* name) : ends_(*SphtMemory::named<Ends>(name))
    {
        SphtMemory::atomically([&](auto& tx) {
            if (tx.read(ends_.front) == nullptr) {
                Node* const empty = new_node(tx, 0);
                tx.write(ends_.front, empty);
                tx.write(ends_.back, empty);
            }
        });
    }
    void push(unsigned, std::uint64_t number)
    {
        SphtMemory::atomically([&](auto& tx) {
            Node* const made = new_node(tx, number);
            tx.write(tx.read(ends_.back)->next, made);
            tx.write(ends_.back, made);
        });
    }
    bool pop(unsigned, std::uint64_t& number)
    {
        return SphtMemory::atomically([&](auto& tx) {
            Node* const empty = tx.read(ends_.front);
            Node* const first = tx.read(empty->next);
            if (first == nullptr) {
                return false;
            }
            number = tx.read(first->number);
            tx.write(ends_.front, first);
            tx.free(empty);
            return true;
        });
    }
    void settle() { SphtMemory::settle(); }

private:
    struct Node {
        std::uint64_t number;
        Node* next;
    };
    struct Ends {
        alignas(64) Node* front;
        alignas(64) Node* back;
    };

    template <class Tx>
    static Node* new_node(Tx& tx, std::uint64_t number)
    {
        Node* const made = static_cast<Node*>(tx.allocate(sizeof(Node)));
        tx.write(made->number, number);
        tx.write(made->next, static_cast<Node*>(nullptr));
        return made;
    }

    Ends& ends_;
};

/// As Progress, a transaction for each note.
class SphtProgress {
public:
    static constexpr unsigned threads_max = 64;
    static constexpr unsigned loaded_slot = threads_max - 1;

    SphtProgress() : slots_(SphtMemory::named<Slot>("bench.progress", threads_max)) {}
    void note(unsigned thread, std::uint64_t operations)
    {
        SphtMemory::atomically([&](auto& tx) { tx.write(slots_[thread].operations, operations); });
    }
    [[nodiscard]] std::uint64_t noted(unsigned thread) const noexcept { return slots_[thread].operations; }

private:
    struct alignas(64) Slot {
        std::uint64_t operations;
    };

    Slot* slots_;
};

static_assert(KeyValueStore<SphtHashStore> && KeyValueStore<SphtTreeStore> && FifoQueue<SphtQueue>);
static_assert(FillsInBatches<SphtHashStore> && FillsInBatches<SphtTreeStore>);

}  // namespace bench
