#pragma once
// SerialGate: transactions run beside each other, or one of them alone: what the paper calls the single global lock [SPHT §3.1, SGL].
// A thread that begins publishes first and looks at the gate second, the one that wants to be alone the other way round with a membarrier
// in between, so that beginning costs no fence.
//
// Privatization: a thread that has committed may use memory by plain accesses which no other thread can find any more. A transaction that
// began before may still read it, or store into it. So the commit waits until no such transaction runs: threads publish the moment
// as of which they read. They do so from the first transaction on that asks for it, since it costs each of them a fence.

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
        std::atomic<std::uint64_t> moment;  ///< transactions up to this timestamp may be unknown to the running one
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
    /// Returns when the gate was open a moment ago. For transactions that read its word themselves; enter_alone() does not wait for them.
    void await_open() noexcept
    {
        while (closed_.load(std::memory_order_acquire) != 0) [[unlikely]] {
            await_change();
        }
    }
    /// 0: the gate is open.
    [[nodiscard]] const std::uint64_t* word() const noexcept { return reinterpret_cast<const std::uint64_t*>(&closed_); }
    /// Returns when no other thread runs; none begins before leave_alone(). The caller has not entered.
    void enter_alone(Place& place) noexcept;
    void leave_alone(Place& place) noexcept;

    [[nodiscard]] bool has_moments() const noexcept { return has_moments_.load(std::memory_order_acquire); }
    /// From here on every thread publishes its moments.
    void want_moments() noexcept;
    /// The caller runs, and reads after the call: another thread that changes what this one reads sees the moment.
    static void publish_moment(Place& place, std::uint64_t moment) noexcept { place.moment.store(moment, std::memory_order_seq_cst); }
    /// Returns when each transaction that runs knows those up to `timestamp`. The caller has left.
    void await_moments_after(std::uint64_t timestamp) noexcept;

    void reset_after_fork() noexcept;

private:
    void enter_slowly(Place& place) noexcept;
    void await_change() noexcept;
    void wake() noexcept;

    os::ReservedArray<Place> places_;
    std::atomic<std::uint32_t> count_{0};
    alignas(128) std::atomic<std::uint64_t> closed_{0};
    std::atomic<std::uint32_t> changes_{0};  ///< futex of every thread that waits
    os::FutexLock alone_;
    alignas(128) std::atomic<bool> has_moments_{false};
};

}  // namespace stillpoint::spht
