#pragma once
// A reader-writer lock for members of durable objects. Part of durable.hpp.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace stillpoint::detail {

/// Held only in the run that has acquired it: its word says in which one. So a restart finds it free, however it was captured, and nothing
/// lists its holders, as it does those of a std::shared_mutex in durable memory. `run` is the same number, never 0, in each call of a run.
/// Readers go before writers that wait, as with glibc's default.
/// Threads: any. Layout: as large as the std::shared_mutex that older pools have in its place; what that leaves there counts as free.
class RunLock {
public:
    void lock_shared(std::uint32_t run) noexcept
    {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        for (unsigned looks = 0;;) {
            const std::uint64_t now = in_run(seen, run);
            if ((now & writer) != 0) {
                wait(seen, now, looks);
            } else if (word_.compare_exchange_weak(seen, now + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
                return;
            }
        }
    }
    void unlock_shared() noexcept
    {
        const std::uint64_t left = word_.fetch_sub(1, std::memory_order_release) - 1;
        if ((left & (readers | has_sleepers)) == has_sleepers) [[unlikely]] {
            wake();
        }
    }
    void lock(std::uint32_t run) noexcept
    {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        for (unsigned looks = 0;;) {
            const std::uint64_t now = in_run(seen, run);
            if ((now & (writer | readers)) != 0) {
                wait(seen, now, looks);
            } else if (word_.compare_exchange_weak(seen, now | writer, std::memory_order_acquire, std::memory_order_relaxed)) {
                return;
            }
        }
    }
    void unlock() noexcept
    {
        if ((word_.fetch_and(~writer, std::memory_order_release) & has_sleepers) != 0) [[unlikely]] {
            wake();
        }
    }

private:
    static constexpr std::uint64_t writer = std::uint64_t{1} << 31;
    static constexpr std::uint64_t has_sleepers = std::uint64_t{1} << 30;
    static constexpr std::uint64_t readers = has_sleepers - 1;
    static constexpr unsigned run_shift = 32;
    /// Before a thread sleeps: some 0.5 us, longer than most locks are held where nothing is waited for.
    static constexpr unsigned looks_before_sleep = 500;

    static std::uint64_t in_run(std::uint64_t word, std::uint32_t run) noexcept
    {
        return word >> run_shift == run ? word : std::uint64_t{run} << run_shift;
    }

    /// The word was `seen`, which is `now` in this run, and the lock is held.
    void wait(std::uint64_t& seen, std::uint64_t now, unsigned& looks) noexcept
    {
        if (++looks < looks_before_sleep) {
            seen = word_.load(std::memory_order_relaxed);
            return;
        }
        if (now == (now | has_sleepers) || word_.compare_exchange_weak(seen, now | has_sleepers, std::memory_order_relaxed)) {
            word_.wait(now | has_sleepers, std::memory_order_relaxed);
            seen = word_.load(std::memory_order_relaxed);
        }
    }
    void wake() noexcept
    {
        word_.fetch_and(~has_sleepers, std::memory_order_relaxed);
        word_.notify_all();
    }

    /// The run's number in the high half; the number of its readers, and the bits above.
    std::atomic<std::uint64_t> word_{0};
    [[maybe_unused]] std::uint64_t of_a_shared_mutex_[6]{};
};
static_assert(sizeof(RunLock) == 56 && std::is_trivially_destructible_v<RunLock>);

/// RunLock::lock_shared, to the end of the scope.
class [[nodiscard]] SharedRunHold {
public:
    SharedRunHold(RunLock& lock, std::uint32_t run) noexcept : lock_(lock) { lock.lock_shared(run); }
    ~SharedRunHold() { lock_.unlock_shared(); }
    SharedRunHold(const SharedRunHold&) = delete;
    SharedRunHold& operator=(const SharedRunHold&) = delete;

private:
    RunLock& lock_;
};

/// RunLock::lock, to the end of the scope.
class [[nodiscard]] RunHold {
public:
    RunHold(RunLock& lock, std::uint32_t run) noexcept : lock_(lock) { lock.lock(run); }
    ~RunHold() { lock_.unlock(); }
    RunHold(const RunHold&) = delete;
    RunHold& operator=(const RunHold&) = delete;

private:
    RunLock& lock_;
};

}  // namespace stillpoint::detail

#endif
