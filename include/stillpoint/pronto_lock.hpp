#pragma once
// A lock for members of durable objects. Part of pronto.hpp.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace stillpoint::pronto {

/// A reader-writer lock of 8 bytes that a restart finds free: its word says in which run of the pool it was acquired, and in every other
/// run that counts as free. So nothing lists its holders, as it does those of a std::mutex or std::shared_mutex in durable memory, which
/// costs more than the lock. In a class with the base pronto::object:
///   const auto hold = this->hold(lock_);                                // or this->hold_shared(lock_)
/// Readers go before writers that wait, as with a std::shared_mutex of glibc. Zeroes are a free lock. Not recursive; the option
/// check_commit_order does not see it.
/// Threads: any. `run`: pronto::object::run_number() of the object that it lies in.
class object_lock {
public:
    void lock_shared(std::uint32_t run) noexcept
    {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        for (unsigned looks = 0;;) {
            const std::uint64_t now = in_run(seen, run);
            if ((now & writer) != 0) {
                wait(seen, looks);
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
                wait(seen, looks);
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

    /// The word was `seen`: in this run the lock is held.
    void wait(std::uint64_t& seen, unsigned& looks) noexcept
    {
        if (++looks < looks_before_sleep) {
            seen = word_.load(std::memory_order_relaxed);
            return;
        }
        if ((seen & has_sleepers) != 0 || word_.compare_exchange_weak(seen, seen | has_sleepers, std::memory_order_relaxed)) {
            word_.wait(seen | has_sleepers, std::memory_order_relaxed);
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
};
static_assert(sizeof(object_lock) == 8 && std::is_trivially_destructible_v<object_lock>);

/// object_lock::lock_shared, to the end of the scope.
class [[nodiscard]] shared_hold {
public:
    shared_hold(object_lock& lock, std::uint32_t run) noexcept : lock_(lock) { lock.lock_shared(run); }
    ~shared_hold() { lock_.unlock_shared(); }
    shared_hold(const shared_hold&) = delete;
    shared_hold& operator=(const shared_hold&) = delete;

private:
    object_lock& lock_;
};

/// object_lock::lock, to the end of the scope.
class [[nodiscard]] lock_hold {
public:
    lock_hold(object_lock& lock, std::uint32_t run) noexcept : lock_(lock) { lock.lock(run); }
    ~lock_hold() { lock_.unlock(); }
    lock_hold(const lock_hold&) = delete;
    lock_hold& operator=(const lock_hold&) = delete;

private:
    object_lock& lock_;
};

}  // namespace stillpoint::pronto

#endif
