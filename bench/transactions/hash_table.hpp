#pragma once
// A hash table with a fixed number of buckets, each a sorted list. The object is an ordinary one; its buckets are named memory.

#include <cstdint>
#include <optional>

#include "list.hpp"
#include "spread.hpp"
#include "transactions.hpp"

namespace bench::transactional {

template <Word Value>
class HashTable {
public:
    HashTable() = default;
    /// `buckets`: memory of `count` lists.
    HashTable(List<Value>* buckets, std::uint64_t count) noexcept : buckets_(buckets), count_(count) {}

    /// As those of List.
    template <Transaction Tx>
    [[nodiscard]] Value* find(Tx& tx, std::uint64_t key) const
    {
        return bucket(key).find(tx, key);
    }
    template <Transaction Tx>
    bool insert(Tx& tx, std::uint64_t key, Value value) const
    {
        return bucket(key).insert(tx, key, value);
    }
    template <Transaction Tx>
    std::optional<Value> remove(Tx& tx, std::uint64_t key) const
    {
        return bucket(key).remove(tx, key);
    }
    /// visit(key, value); no thread is in a transaction.
    template <class Visit>
    void for_each(Visit visit) const
    {
        for (std::uint64_t i = 0; i < count_; ++i) {
            buckets_[i].for_each(visit);
        }
    }
    [[nodiscard]] std::uint64_t bucket_count() const noexcept { return count_; }
    [[nodiscard]] List<Value>& bucket_at(std::uint64_t place) const noexcept { return buckets_[place]; }

    /// Frees every node: a transaction for each bucket that has some.
    template <TransactionalMemory M>
    void clear() const
    {
        for (std::uint64_t i = 0; i < count_; ++i) {
            if (!buckets_[i].is_empty()) {
                M::atomically([list = &buckets_[i]](auto& tx) {
                    while (list->pop(tx)) {
                    }
                });
            }
        }
    }

private:
    [[nodiscard]] List<Value>& bucket(std::uint64_t key) const noexcept { return buckets_[spread(key) % count_]; }

    List<Value>* buckets_ = nullptr;
    std::uint64_t count_ = 0;
};

}  // namespace bench::transactional
