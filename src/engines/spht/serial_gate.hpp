#pragma once
// SerialGate: transactions run beside each other, or one of them alone: what the paper calls the single global lock [SPHT §3.1, SGL].
// A thread that begins publishes first and looks at the gate second, the one that wants to be alone the other way round with a membarrier
// in between, so that beginning costs no fence.

#include <atomic>
#include <cstdint>

#include "core/sync.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::spht {

class SerialGate {
public:
    /// A thread's place: it alone writes it. 1: a transaction runs, whose reads or stores into memory are not over.
    struct alignas(128) Place {
        std::atomic<std::uint32_t> running;
    };

    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve(std::uint64_t places) { return places_.reserve(places, "the threads of transactions"); }
    void set_places(std::uint32_t count) noexcept { count_.store(count, std::memory_order_release); }
    [[nodiscard]] Place& place(std::uint32_t number) noexcept { return places_[number]; }

    /// Returns when the thread may run beside others.
    void enter(Place& place) noexcept
    {
        place.running.store(1, std::memory_order_relaxed);
        sync::compiler_fence(std::memory_order_seq_cst);
        if (closed_.load(std::memory_order_acquire) != 0) [[unlikely]] {
            enter_slowly(place);
        }
    }
    void leave(Place& place) noexcept
    {
        place.running.store(0, std::memory_order_release);
        sync::compiler_fence(std::memory_order_seq_cst);
        if (closed_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
            wake();
        }
    }
    /// Returns when no other thread runs; none begins before leave_alone(). The caller has not entered.
    void enter_alone(Place& place) noexcept;
    void leave_alone(Place& place) noexcept;

    void reset_after_fork() noexcept;

private:
    void enter_slowly(Place& place) noexcept;
    void wake() noexcept;

    os::ReservedArray<Place> places_;
    std::atomic<std::uint32_t> count_{0};
    alignas(128) std::atomic<std::uint32_t> closed_{0};
    std::atomic<std::uint32_t> changes_{0};  ///< futex of every thread that waits
    os::FutexLock alone_;
};

}  // namespace stillpoint::spht
