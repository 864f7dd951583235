#pragma once
// A figure that one thread at a time adds to and any thread reads.

#include <atomic>
#include <cstdint>

namespace stillpoint {

class Counter {
public:
    void add(std::uint64_t amount) noexcept
    {
        // No locked instruction: a medium has one writer at a time.
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    /// Adds to a figure that several threads add to.
    void add_shared(std::uint64_t amount) noexcept { value_.fetch_add(amount, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

}  // namespace stillpoint
