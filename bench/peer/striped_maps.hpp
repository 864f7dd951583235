#pragma once
// The system that the example holds against Stillpoint: std::unordered_map in stripes with a mutex each, and a std::deque with one.
// In memory alone: it keeps nothing, and shows what the door to it costs (std_maps.cpp) against calling it directly.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

class StripedMaps {
public:
    explicit StripedMaps(std::uint64_t keys) : stripes_(new Stripe[stripe_count])
    {
        for (std::size_t i = 0; i < stripe_count; ++i) {
            stripes_[i].map.reserve(keys / stripe_count + 1);
        }
    }

    /// False: there is no such key. `out` has room for the value.
    bool get(std::uint64_t key, void* out)
    {
        Stripe& stripe = stripe_of(key);
        const std::lock_guard<std::mutex> locked(stripe.mutex);
        const auto found = stripe.map.find(key);
        if (found == stripe.map.end()) {
            return false;
        }
        std::memcpy(out, found->second.data(), found->second.size());
        return true;
    }
    void put(std::uint64_t key, const void* value, std::size_t value_bytes)
    {
        Stripe& stripe = stripe_of(key);
        const std::lock_guard<std::mutex> locked(stripe.mutex);
        stripe.map[key].assign(static_cast<const char*>(value), value_bytes);
    }
    /// False: there was no such key.
    bool remove(std::uint64_t key)
    {
        Stripe& stripe = stripe_of(key);
        const std::lock_guard<std::mutex> locked(stripe.mutex);
        return stripe.map.erase(key) == 1;
    }
    void push(std::uint64_t number)
    {
        const std::lock_guard<std::mutex> locked(queue_mutex_);
        queue_.push_back(number);
    }
    /// False: the queue is empty.
    bool pop(std::uint64_t& number)
    {
        const std::lock_guard<std::mutex> locked(queue_mutex_);
        if (queue_.empty()) {
            return false;
        }
        number = queue_.front();
        queue_.pop_front();
        return true;
    }

private:
    struct alignas(64) Stripe {
        std::mutex mutex;
        std::unordered_map<std::uint64_t, std::string> map;
    };
    static constexpr std::size_t stripe_count = 1024;

    Stripe& stripe_of(std::uint64_t key) const { return stripes_[key * 0x9e3779b97f4a7c15u >> 54]; }

    std::unique_ptr<Stripe[]> stripes_;
    std::mutex queue_mutex_;
    std::deque<std::uint64_t> queue_;
};
