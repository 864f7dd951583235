#pragma once
// Figures that any thread reads: of one thread at a time, and of many, which then do not share a cache line.

#include <array>
#include <atomic>
#include <cstddef>
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

/// The calling thread's share of the figures below: from 1; 0: it has none yet. initial-exec: one instruction, and never a call.
extern constinit thread_local unsigned counter_share [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]];
[[nodiscard, gnu::cold]] unsigned choose_counter_share() noexcept;

/// `count` figures that many threads add to. Each is exact when no thread adds.
template <std::size_t count>
class SharedCounters {
public:
    void add(std::size_t figure, std::uint64_t amount) noexcept
    {
        const unsigned share = counter_share != 0 ? counter_share : choose_counter_share();
        shares_[share % shares].figures[figure].fetch_add(amount, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t get(std::size_t figure) const noexcept
    {
        std::uint64_t sum = 0;
        for (const Share& share : shares_) {
            sum += share.figures[figure].load(std::memory_order_relaxed);
        }
        return sum;
    }

private:
    static constexpr unsigned shares = 16;
    /// Two lines: the CPU fetches them in pairs.
    struct alignas(128) Share {
        std::array<std::atomic<std::uint64_t>, count> figures{};
    };

    std::array<Share, shares> shares_{};
};

}  // namespace stillpoint
