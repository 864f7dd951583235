#pragma once
// A queue of bounded length in durable memory, between the stages of a pipeline: a monitor with two condition variables.

#include <cstdint>

#include "../engines/engine.hpp"

namespace bench {

/// Lies in zeroed durable memory. Item: plain data.
template <MemoryEngine E, class Item>
class BoundedQueue {
public:
    /// Empties it; `producers`: how many threads will close it. No thread is at work.
    void open(unsigned producers)
    {
        typename E::template Operation<1> operation;
        operation.lock(mutex_);
        first_ = 0;
        count_ = 0;
        producers_ = producers;
    }

    /// Waits for room.
    void push(const Item& item)
    {
        typename E::template Operation<1> operation;
        operation.lock(mutex_);
        while (count_ == capacity) {
            operation.wait(not_full_, mutex_);
        }
        items_[(first_ + count_) % capacity].set(item);
        count_ = count_ + 1;
        if (count_ == 1) {
            E::notify_all(not_empty_);
        }
    }

    /// Waits for an item; false: it is empty, and every producer has closed it.
    bool pop(Item& item)
    {
        typename E::template Operation<1> operation;
        operation.lock(mutex_);
        while (count_ == 0 && producers_ != 0) {
            operation.wait(not_empty_, mutex_);
        }
        if (count_ == 0) {
            return false;
        }
        item = items_[first_].get();
        first_ = (first_ + 1) % capacity;
        count_ = count_ - 1;
        if (count_ == capacity - 1) {
            E::notify_all(not_full_);
        }
        return true;
    }

    /// One producer has pushed its last item.
    void close()
    {
        typename E::template Operation<1> operation;
        operation.lock(mutex_);
        producers_ = producers_ - 1;
        E::notify_all(not_empty_);
    }

private:
    static constexpr std::uint32_t capacity = 64;

    typename E::Mutex mutex_;
    typename E::Condition not_empty_;
    typename E::Condition not_full_;
    typename E::template Durable<std::uint32_t> first_;
    typename E::template Durable<std::uint32_t> count_;
    typename E::template Durable<std::uint32_t> producers_;
    typename E::template Record<Item> items_[capacity];
};

}  // namespace bench
