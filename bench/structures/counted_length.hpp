#pragma once
// How many elements a structure has, counted by its updates: each thread has a share of its own, which an update changes in its operation.
// The shares add up to the length, after a crash too.

#include <cstdint>
#include <span>
#include <string>

#include "../engines/engine.hpp"

namespace bench {

template <MemoryEngine E>
class CountedLength {
public:
    static constexpr unsigned threads_max = 16;

    explicit CountedLength(const std::string& name) : shares_(E::template named<Share>((name + ".shares").c_str(), threads_max)) {}

    /// Locks the thread's share, after all other locks of the operation.
    template <class Operation>
    void add(Operation& operation, unsigned thread, std::int64_t change)
    {
        Share& share = shares_[thread];
        operation.lock(share.mutex);
        share.inserted_less_removed = share.inserted_less_removed + change;
    }
    /// No other thread may be running.
    [[nodiscard]] std::int64_t sum() const
    {
        std::int64_t sum = 0;
        for (const Share& share : std::span(shares_, threads_max)) {
            sum += share.inserted_less_removed;
        }
        return sum;
    }

private:
    struct alignas(64) Share {
        typename E::Mutex mutex;
        typename E::template Durable<std::int64_t> inserted_less_removed;
    };

    Share* shares_;
};

}  // namespace bench
