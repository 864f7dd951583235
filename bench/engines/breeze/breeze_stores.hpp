#pragma once
// The bench's structures as typed objects with ordinary pointers: a hash map, an ordered map and a queue. An operation is a transaction,
// and holds the locks of what it reads and writes until it has committed.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>

#include "../../harness/bucket_of_key.hpp"
#include "../batched_filling.hpp"
#include "../engine.hpp"
#include "breeze_memory.hpp"

namespace bench {

/// Puts of a fill, in one transaction: the log of a small pool has room for them.
inline constexpr std::size_t breeze_puts_at_once = 64;

class BreezeHashStore : public BatchedFilling<BreezeHashStore, BreezeMemory, breeze_puts_at_once> {
public:
    BreezeHashStore(const Shape& shape, const char* name, std::uint64_t keys)
        : value_bytes_(shape.value_bytes), bucket_count_(std::bit_ceil(keys / 2 + (keys < 2 ? 1 : 0))),
          buckets_(BreezeMemory::named<BreezeBuckets>(shape, name, NVM_TYPE_ID(BreezeBuckets), bucket_count_ * sizeof(BreezeRecord*))),
          locks_(std::make_unique<BreezeLocks>())
    {
    }

    [[nodiscard]] bool get(unsigned, std::uint64_t key, std::span<std::byte> out)
    {
        const std::uint64_t bucket = bucket_of_key(key, bucket_count_);
        const std::lock_guard locked(locks_->of(bucket));
        const BreezeRecord* const record = *link_of(bucket, key);
        if (record == nullptr) {
            return false;
        }
        std::memcpy(out.data(), record->value, out.size());
        return true;
    }
    void put(unsigned, std::uint64_t key, std::span<const std::byte> value)
    {
        if (!is_kept_for_later(key, value)) {
            const std::lock_guard locked(locks_->of(bucket_of_key(key, bucket_count_)));
            BreezeMemory::atomically([&](auto& tx) { put_in(tx, key, value); });
        }
    }
    template <class Tx>
    void put_in(Tx& tx, std::uint64_t key, std::span<const std::byte> value)
    {
        const std::uint64_t bucket = bucket_of_key(key, bucket_count_);
        if (BreezeRecord* const record = *link_of(bucket, key)) {
            tx.write_bytes(record->value, value.data(), value.size());
            return;
        }
        auto* const made = tx.template make<BreezeRecord>(NVM_TYPE_ID(BreezeRecord), offsetof(BreezeRecord, value) + value_bytes_);
        made->next = first(bucket);
        made->key = key;
        std::memcpy(made->value, value.data(), value.size());
        tx.write(first(bucket), made);
    }
    bool remove(unsigned, std::uint64_t key)
    {
        const std::uint64_t bucket = bucket_of_key(key, bucket_count_);
        const std::lock_guard locked(locks_->of(bucket));
        BreezeRecord** const link = link_of(bucket, key);
        if (*link == nullptr) {
            return false;
        }
        BreezeMemory::atomically([&](auto& tx) { tx.write(*link, (*link)->next); });
        return true;
    }
    void settle() { BreezeMemory::settle(); }

private:
    [[nodiscard]] BreezeRecord*& first(std::uint64_t bucket) noexcept { return buckets_->first[bucket]; }
    /// The pointer that leads to the record of the key; to nullptr: there is none.
    [[nodiscard]] BreezeRecord** link_of(std::uint64_t bucket, std::uint64_t key) noexcept
    {
        BreezeRecord** link = &first(bucket);
        while (*link != nullptr && (*link)->key != key) {
            link = &(*link)->next;
        }
        return link;
    }

    std::size_t value_bytes_;
    std::uint64_t bucket_count_;
    BreezeBuckets* buckets_;
    std::unique_ptr<BreezeLocks> locks_;
};

/// The tree's shape has one lock, which readers share; a value has one of many.
class BreezeTreeStore : public BatchedFilling<BreezeTreeStore, BreezeMemory, breeze_puts_at_once> {
public:
    BreezeTreeStore(const Shape& shape, const char* name, std::uint64_t)
        : value_bytes_(shape.value_bytes), root_(*BreezeMemory::named<BreezeTreeRoot>(shape, name, NVM_TYPE_ID(BreezeTreeRoot))),
          locks_(std::make_unique<BreezeLocks>())
    {
    }

    [[nodiscard]] bool get(unsigned, std::uint64_t key, std::span<std::byte> out)
    {
        const std::shared_lock shape_locked(shape_);
        const BreezeValue* const value = find(key);
        if (value == nullptr) {
            return false;
        }
        const std::lock_guard value_locked(locks_->of(key));
        std::memcpy(out.data(), value->bytes, out.size());
        return true;
    }
    void put(unsigned, std::uint64_t key, std::span<const std::byte> value)
    {
        if (is_kept_for_later(key, value)) {
            return;
        }
        {
            const std::shared_lock shape_locked(shape_);
            if (BreezeValue* const found = find(key)) {
                const std::lock_guard value_locked(locks_->of(key));
                BreezeMemory::atomically([&](auto& tx) { tx.write_bytes(found->bytes, value.data(), value.size()); });
                return;
            }
        }
        const std::unique_lock shape_locked(shape_);
        BreezeMemory::atomically([&](auto& tx) { put_in(tx, key, value); });
    }
    template <class Tx>
    void put_in(Tx& tx, std::uint64_t key, std::span<const std::byte> value)
    {
        if (BreezeValue* const found = find(key)) {
            tx.write_bytes(found->bytes, value.data(), value.size());
            return;
        }
        auto* const made = tx.template make<BreezeValue>(NVM_TYPE_ID(BreezeValue), value_bytes_);
        std::memcpy(made->bytes, value.data(), value.size());
        root_.tree.insert(tx, key, made);
    }
    bool remove(unsigned, std::uint64_t key)
    {
        const std::unique_lock shape_locked(shape_);
        return BreezeMemory::atomically([&](auto& tx) { return root_.tree.remove(tx, key).has_value(); });
    }
    void settle() { BreezeMemory::settle(); }

private:
    [[nodiscard]] BreezeValue* find(std::uint64_t key)
    {
        const BreezeMemory::Handle reading;
        BreezeValue** const value = root_.tree.find(reading, key);
        return value == nullptr ? nullptr : *value;
    }

    std::size_t value_bytes_;
    BreezeTreeRoot& root_;
    std::shared_mutex shape_;
    std::unique_ptr<BreezeLocks> locks_;
};

/// First in, first out, under one lock, with an empty link in front.
class BreezeQueue {
public:
    BreezeQueue(const Shape& shape, const char* name) : ends_(*BreezeMemory::named<BreezeEnds>(shape, name, NVM_TYPE_ID(BreezeEnds)))
    {
        if (ends_.front == nullptr) {
            BreezeMemory::atomically([&](auto& tx) {
                tx.announce(ends_);
                ends_.front = ends_.back = tx.template make<BreezeLink>(NVM_TYPE_ID(BreezeLink));
            });
        }
    }
    void push(unsigned, std::uint64_t number)
    {
        const std::lock_guard locked(lock_);
        BreezeMemory::atomically([&](auto& tx) {
            auto* const made = tx.template make<BreezeLink>(NVM_TYPE_ID(BreezeLink));
            made->number = number;
            BreezeLink*& last = ends_.back->next;
            tx.announce(last, ends_.back);
            last = made;
            ends_.back = made;
        });
    }
    bool pop(unsigned, std::uint64_t& number)
    {
        const std::lock_guard locked(lock_);
        BreezeLink* const first = ends_.front->next;
        if (first == nullptr) {
            return false;
        }
        number = first->number;
        BreezeMemory::atomically([&](auto& tx) { tx.write(ends_.front, first); });
        return true;
    }
    void settle() { BreezeMemory::settle(); }

private:
    BreezeEnds& ends_;
    std::mutex lock_;
};

/// As Progress, a transaction for each note.
class BreezeProgress {
public:
    static constexpr unsigned threads_max = 64;
    static constexpr unsigned loaded_slot = threads_max - 1;

    explicit BreezeProgress(const Shape& shape)
        : slots_(BreezeMemory::named<BreezeSlot>(shape, "bench.progress", NVM_TYPE_ID(BreezeSlot), threads_max * sizeof(BreezeSlot)))
    {
    }
    void note(unsigned thread, std::uint64_t operations)
    {
        BreezeMemory::atomically([&](auto& tx) { tx.write(slots_[thread].operations, operations); });
    }
    [[nodiscard]] std::uint64_t noted(unsigned thread) const noexcept { return slots_[thread].operations; }

private:
    BreezeSlot* slots_;
};

static_assert(KeyValueStore<BreezeHashStore> && KeyValueStore<BreezeTreeStore> && FifoQueue<BreezeQueue>);
static_assert(FillsInBatches<BreezeHashStore> && FillsInBatches<BreezeTreeStore>);

}  // namespace bench
