#pragma once
// Epoch numbers and the threads that wait for them [PMThreads §5: acknowledgement].

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "os/futex.hpp"

namespace stillpoint {

/// Threads: any. The checkpoint thread advances, all read and wait.
class EpochClock {
public:
    void set(std::uint64_t running, std::uint64_t durable) noexcept
    {
        running_.store(running, std::memory_order_release);
        durable_.store(durable, std::memory_order_release);
    }
    [[nodiscard]] std::uint64_t running() const noexcept { return running_.load(std::memory_order_acquire); }
    [[nodiscard]] std::uint64_t durable() const noexcept { return durable_.load(std::memory_order_acquire); }

    /// In a stop: the running epoch ends and the next begins. Returns the one that ended.
    std::uint64_t advance() noexcept { return running_.fetch_add(1, std::memory_order_acq_rel); }

    void set_durable(std::uint64_t epoch) noexcept
    {
        durable_.store(epoch, std::memory_order_release);
        wake();
    }

    /// Nothing will become durable any more; waiters get `failure`. The first call counts.
    void fail_for_good(const Failure& failure) noexcept
    {
        if (!failed_.load(std::memory_order_acquire)) {
            failure_ = failure;
            failed_.store(true, std::memory_order_release);
            wake();
        }
    }
    [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
    /// Valid once failed() is true.
    [[nodiscard]] const Failure& failure() const noexcept { return failure_; }

    /// Newest epoch that a thread waits for: an epoch without writes is then committed too.
    [[nodiscard]] std::uint64_t wanted() const noexcept { return wanted_.load(std::memory_order_acquire); }

    /// Errors: timed_out; the failure of fail_for_good().
    [[nodiscard]] Result<void> wait_durable(std::uint64_t epoch, std::uint64_t deadline_ns) noexcept;

private:
    void wake() noexcept
    {
        changes_.fetch_add(1, std::memory_order_acq_rel);
        os::futex_wake(changes_);
    }

    std::atomic<std::uint64_t> running_{0};
    std::atomic<std::uint64_t> durable_{0};
    std::atomic<std::uint64_t> wanted_{0};
    std::atomic<std::uint32_t> changes_{0};  ///< futex of the waiting threads
    std::atomic<bool> failed_{false};
    Failure failure_{};
};

}  // namespace stillpoint
