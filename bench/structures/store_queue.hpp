#pragma once
// A queue in an ordered store of keys and values: an element's key is its number in the order of pushing. The ends of the queue
// are the lowest and the highest key; the program looks them up when it starts and then remembers them. So a
// push or a pop is one update of the store, and one operation to a crash.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "../engines/engine.hpp"
#include "../harness/ending.hpp"
#include "../worker/shape.hpp"

namespace bench {

template <OrderedStore Store>
class StoreQueue {
public:
    StoreQueue(const Shape& shape, const char* name) : value_bytes_(shape.value_bytes), store_(shape, name, 1'000'000)
    {
        if (const auto first = store_.lowest_key_below(keys_end)) {
            first_ = *first;
            last_ = *store_.highest_key_below(keys_end) + 1;
        }
    }

    void push(unsigned thread, std::uint64_t number)
    {
        std::vector<std::byte> value(value_bytes_);
        std::memcpy(value.data(), &number, sizeof number);
        const std::lock_guard locked(lock_);
        store_.put(thread, last_, value);
        ++last_;
    }
    bool pop(unsigned thread, std::uint64_t& number)
    {
        std::vector<std::byte> value(value_bytes_);
        const std::lock_guard locked(lock_);
        if (first_ == last_) {
            return false;
        }
        if (!store_.get(thread, first_, value) || !store_.remove(thread, first_)) {
            give_up("element " + std::to_string(first_) + " of the queue is missing in the store");
        }
        std::memcpy(&number, value.data(), sizeof number);
        ++first_;
        return true;
    }
    void settle() { store_.settle(); }

    void begin_fill() { store_.begin_fill(); }
    void end_fill() { store_.end_fill(); }

    // As a store, for the progress of the threads.
    bool get(unsigned thread, std::uint64_t key, std::span<std::byte> out) { return store_.get(thread, key, out); }
    void put(unsigned thread, std::uint64_t key, std::span<const std::byte> value) { store_.put(thread, key, value); }
    bool remove(unsigned thread, std::uint64_t key) { return store_.remove(thread, key); }

private:
    /// Keys from here on are the progress's.
    static constexpr std::uint64_t keys_end = std::uint64_t{1} << 63;

    std::size_t value_bytes_;
    Store store_;
    std::mutex lock_;
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
};

}  // namespace bench
