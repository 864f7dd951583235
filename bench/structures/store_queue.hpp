#pragma once
// A queue in a store of keys and values: an element's key is its number in the order of pushing, and two more keys say where the
// queue begins and ends. A push is two operations of the store: a crash between them leaves an element that nobody finds.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "../engines/engine.hpp"
#include "../worker/shape.hpp"

namespace bench {

template <KeyValueStore Store>
class StoreQueue {
public:
    StoreQueue(const Shape& shape, const char* name) : value_bytes_(shape.value_bytes), store_(shape, name, 1'000'000)
    {
        first_ = read(first_key, 0).value_or(0);
        last_ = read(last_key, 0).value_or(0);
    }

    void push(unsigned thread, std::uint64_t number)
    {
        const std::lock_guard locked(lock_);
        write(thread, last_, number);
        write(thread, last_key, ++last_);
    }
    bool pop(unsigned thread, std::uint64_t& number)
    {
        const std::lock_guard locked(lock_);
        if (first_ == last_) {
            return false;
        }
        number = read(first_, thread).value_or(UINT64_MAX);
        store_.remove(thread, first_);
        write(thread, first_key, ++first_);
        return true;
    }
    void settle() { store_.settle(); }

    // As a store, for the progress of the threads.
    bool get(unsigned thread, std::uint64_t key, std::span<std::byte> out) { return store_.get(thread, key, out); }
    void put(unsigned thread, std::uint64_t key, std::span<const std::byte> value) { store_.put(thread, key, value); }
    bool remove(unsigned thread, std::uint64_t key) { return store_.remove(thread, key); }

private:
    static constexpr std::uint64_t first_key = UINT64_MAX - 1001;
    static constexpr std::uint64_t last_key = UINT64_MAX - 1002;

    std::optional<std::uint64_t> read(std::uint64_t key, unsigned thread)
    {
        std::vector<std::byte> value(value_bytes_);
        std::uint64_t number = 0;
        if (!store_.get(thread, key, value)) {
            return std::nullopt;
        }
        std::memcpy(&number, value.data(), sizeof number);
        return number;
    }
    void write(unsigned thread, std::uint64_t key, std::uint64_t number)
    {
        std::vector<std::byte> value(value_bytes_);
        std::memcpy(value.data(), &number, sizeof number);
        store_.put(thread, key, value);
    }

    std::size_t value_bytes_;
    Store store_;
    std::mutex lock_;
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
};

}  // namespace bench
